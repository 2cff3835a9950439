"""Turning texts into vectors. A failure is a reply, never an empty result."""

from __future__ import annotations

from typing import ClassVar, Literal

from protocol.base import Message, Request

__all__ = ["Embed", "EmbedFailed", "EmbedFailure", "EmbedUse", "Vectors"]

EmbedUse = Literal["query", "document"]
"""What a text is for: some models want to be told."""

EmbedFailure = Literal[
    # transient, after the tries were exhausted
    "timeout",
    "transport",
    "rate_limit",
    "server_error",
    "crash",
    # fatal, never retried
    "bad_request",
    "auth",
    "quota",
    "body",
]
"""Why there are no vectors, in the words of a chat's failure kinds."""


class Vectors(Message, frozen=True, kw_only=True, tag=True):
    """One vector per text, in their order: unit length, float32, little-endian."""

    vectors: tuple[bytes, ...]


class EmbedFailed(Message, frozen=True, kw_only=True, tag=True):
    """No vectors. Transient kinds mean infrastructure (outcome *missing*)."""

    kind: EmbedFailure
    fatal: bool
    detail: str


class Embed(Request[Vectors | EmbedFailed], frozen=True, kw_only=True, tag=True):
    """Turn texts into vectors. Texts of several requests may travel together."""

    IDEMPOTENT: ClassVar[bool] = True

    texts: tuple[str, ...]
    use: EmbedUse
