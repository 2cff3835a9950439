"""Randomness as a hash of a readable key, so that a stopped run never redraws a coin. Pure."""

from __future__ import annotations

import hashlib

import msgspec

__all__ = ["keyed_integer"]


def keyed_integer(*key: str | int) -> int:
    """A uniform integer of 256 bits; another key (its order and types count) gives another."""
    # JSON, not a separator: a class may be called anything, and ("a|b", "c") is not ("a", "b|c")
    return int.from_bytes(hashlib.sha256(msgspec.json.encode(key)).digest(), "big")
