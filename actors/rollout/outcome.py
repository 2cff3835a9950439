"""How an attempt ends, and what its calls bring: the types between loop, actor and record."""

from __future__ import annotations

import msgspec

from protocol.llm import Usage
from protocol.rollout import ForcedBy, Step, Stop
from protocol.video import Picture

__all__ = ["Broken", "Described", "Ended", "Lost", "Seen"]


class Lost(msgspec.Struct, frozen=True):
    """A call that infrastructure lost. kind: as in ``Missed``."""

    kind: str
    detail: str


class Described(msgspec.Struct, frozen=True):
    """Pictures as another model saw them. seconds, usage: what that model took."""

    text: str
    node_ids: tuple[str, ...]
    usage: Usage
    seconds: float


class Seen(msgspec.Struct, frozen=True):
    """What a call brought. refused: it brought nothing but the reason."""

    text: str
    node_ids: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    refused: bool = False


class Ended(msgspec.Struct, frozen=True):
    """The agent ran to an end. why: how the letter was read, or why there is none."""

    letter: str | None
    why: str
    submitted: str
    confidence: float
    stop: Stop
    steps: tuple[Step, ...]
    forced_by: ForcedBy = ""


class Broken(msgspec.Struct, frozen=True):
    """Infrastructure failed. steps: those that were whole."""

    kind: str
    detail: str
    steps: tuple[Step, ...]
