"""Tests of the engine prompts."""
