"""What is drawn anew: a pass that was refused because of what its answers were.

Answers of a refused pass are in the cache, so that an outage costs nothing twice. Where the
answers themselves were the reason (prose instead of actions, findings that cannot be read), the
cache would bring the same reason back for ever. Such a pass therefore gets another salt.
"""

from __future__ import annotations

from typing import ClassVar

from protocol.row import Row

__all__ = ["RedrawRow", "redrawn"]


class RedrawRow(Row, frozen=True, kw_only=True, tag=True):
    """A pass that was refused and is to be drawn anew, whole, from its first answer on.

    It has no ``run_key``: the pass that begins anew deletes what lies under its own, but not
    this. number: from 1, the draw that follows. what: why the one before was refused.
    """

    TABLE: ClassVar[str] = "redraws"
    KEY: ClassVar[tuple[str, ...]] = ("pass_key", "number")

    pass_key: str
    number: int
    what: str


def redrawn(salt: str, number: int) -> str:
    """The salt of the draw with this number; 0, the first one, keeps the salt as it is."""
    return f"{salt}/again{number}" if number else salt
