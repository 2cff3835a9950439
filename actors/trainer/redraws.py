"""Passes that are drawn anew when they begin again (``protocol.redraws``)."""

from __future__ import annotations

from actors.trainer.peers import Peers
from protocol.base import Refused, Scope
from protocol.ledger import Record, Select, Where, rows_of
from protocol.redraws import RedrawRow

__all__ = ["redraws", "to_redraw"]


async def redraws(peers: Peers, key: str) -> int:
    """How often the pass was refused for its own answers; 0: never, its first draw stands."""
    where = (Where(column="pass_key", value=key),)
    found = await peers.ledger.ask(Select(table=RedrawRow.TABLE, where=where))
    return len(rows_of(RedrawRow, found))


async def to_redraw(peers: Peers, scope: Scope, key: str, again: int, refused: Refused) -> Refused:
    """Note that nothing of this draw (number ``again``) may be used; returns the refusal."""
    row = RedrawRow(pass_key=key, number=again + 1, what=refused.what)
    await peers.ledger.ask(Record(scope=scope, rows=(row,)))
    return refused
