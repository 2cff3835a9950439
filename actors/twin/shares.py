"""What an editor's reply is going to be: good, idle, bad or broken, in the stated shares.

Pure: a draw per *slot* (place in the reply), never told. A gate has to find out.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.twin.chance import fraction, pick
from actors.twin.ideas import Kind

__all__ = ["UNREAD", "Shares", "mended_kind", "slot_kind", "spoil"]

UNREAD = "Your reply could not be read:"
"""How a message begins that asks for the reply again."""

_PROSE = "I would rewrite the whole of it: it is too long, and the agent ignores it."


class Shares(msgspec.Struct, frozen=True):
    """The shares of the editor's proposals, in [0, 1] and 1 together."""

    helpful: float
    useless: float
    harmful: float
    malformed: float


def slot_kind(shares: Shares, slot: int, *key: object) -> Kind | Literal["malformed"]:
    """What a slot's proposal is going to be."""
    drawn = fraction("kind", slot, *key)
    if drawn < shares.helpful:
        return "helpful"
    if drawn < shares.helpful + shares.useless:
        return "useless"
    if drawn < shares.helpful + shares.useless + shares.harmful:
        return "harmful"
    return "malformed"


def mended_kind(shares: Shares, *key: object) -> Kind:
    """Slot 0 drawn again among the sound kinds, after a complaint."""
    sound = shares.helpful + shares.useless + shares.harmful
    if sound <= 0:
        return "useless"
    drawn = fraction("mended", *key) * sound
    if drawn < shares.helpful:
        return "helpful"
    return "useless" if drawn < shares.helpful + shares.useless else "harmful"


def spoil(text: str, wrong: str, *key: object) -> str:
    """A reply that cannot be used: broken off, prose, or JSON that breaks the form (``wrong``)."""
    return pick((text[: max(1, len(text) * 3 // 5)], _PROSE, wrong), "spoil", *key)
