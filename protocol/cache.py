"""Answered chats by key; a dead or corrupt store is a miss, never an error."""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message, Request
from protocol.llm import ChatAnswer

__all__ = ["CacheGet", "CacheHit", "CacheMiss", "CachePut", "CacheStored"]


class CacheHit(Message, frozen=True, kw_only=True, tag=True):
    """The stored answer, as it was received."""

    answer: ChatAnswer


class CacheMiss(Message, frozen=True, kw_only=True, tag=True):
    """Nothing usable: ``why`` is ``absent``, ``expired``, ``corrupt`` or ``unavailable``."""

    why: str


class CacheStored(Message, frozen=True, kw_only=True, tag=True):
    """Whether the entry is in the store now (false: the store was unavailable)."""

    stored: bool


class CacheGet(Request[CacheHit | CacheMiss], frozen=True, kw_only=True, tag=True):
    """Look a key (64 hex digits) up."""

    IDEMPOTENT: ClassVar[bool] = True

    key: str


class CachePut(Request[CacheStored], frozen=True, kw_only=True, tag=True):
    """Keep a complete answer under a key, for the configured time to live."""

    IDEMPOTENT: ClassVar[bool] = True

    key: str
    answer: ChatAnswer
