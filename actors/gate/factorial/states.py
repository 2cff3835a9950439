"""An edit under test, and what becomes of it: live -> adopted | rejected, live -> dropped. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

__all__ = ["FactorialEdit", "State", "conclude", "counted", "live_edits", "needs_pairs"]

State = Literal["live", "adopted", "rejected", "dropped"]


class FactorialEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One edit of a class, or the class's sentinel.

    born: the epoch that proposed it, from 1; its first pairs are that epoch's.
    group: names the edits of which at most one can be on; None: it stands with every other.
    sentinel: an edit that changes nothing and is known to; tested like the others, never adopted.
    wins, losses: W and L, discordant pairs that spoke for it and against it.
    seen: D_seen, discordant pairs since its birth that it took part in, by a virtual coin once it
        was dropped. A live edit's is W + L.
    pairs: valid pairs that it took part in while live, ties too.
    """

    edit_id: str
    task_type: str
    born: int
    group: str | None = None
    sentinel: bool = False
    state: State = "live"
    wins: int = 0
    losses: int = 0
    seen: int = 0
    pairs: int = 0

    def __post_init__(self) -> None:
        if min(self.wins, self.losses, self.seen, self.pairs) < 0:
            raise ValueError(f"{self.edit_id}: counts cannot be negative")
        if self.seen < self.discordant or self.pairs < self.discordant:
            raise ValueError(f"{self.edit_id}: won or lost more pairs than it has seen")
        if self.state == "live" and self.seen != self.discordant:
            raise ValueError(f"{self.edit_id}: is live and did not count a pair that it has seen")
        if self.sentinel and self.state != "live":
            raise ValueError(f"{self.edit_id}: a sentinel is never decided")

    @property
    def discordant(self) -> int:
        """W + L."""
        return self.wins + self.losses


def live_edits(edits: Iterable[FactorialEdit]) -> tuple[FactorialEdit, ...]:
    """Those that still take part, sentinels too, in the order given."""
    return tuple(edit for edit in edits if edit.state == "live")


def needs_pairs(edits: Iterable[FactorialEdit]) -> bool:
    """Whether a class has an edit to test; a sentinel alone is not worth a draw."""
    return any(edit.state == "live" and not edit.sentinel for edit in edits)


def counted(edits: Iterable[FactorialEdit]) -> tuple[FactorialEdit, ...]:
    """The M edits of the run that the decision is about: all ever proposed but the sentinels."""
    return tuple(edit for edit in edits if not edit.sentinel)


def conclude(edits: Iterable[FactorialEdit], adopted: Iterable[str]) -> tuple[FactorialEdit, ...]:
    """Every live edit becomes adopted or rejected; dropped ones and sentinels stay what they are.

    Raises ValueError for an adopted id that is no live edit.
    """
    wanted = set(adopted)
    ended = []
    for edit in edits:
        if edit.state == "live" and not edit.sentinel:
            state: State = "adopted" if edit.edit_id in wanted else "rejected"
            wanted.discard(edit.edit_id)
            edit = msgspec.structs.replace(edit, state=state)
        ended.append(edit)
    if wanted:
        raise ValueError(f"cannot be adopted, not live: {', '.join(sorted(wanted))}")
    return tuple(ended)
