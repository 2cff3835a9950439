"""What a run under the factorial gate that is under way has still to draw. Reads, never raises."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from actors.commands.check_line import Line, fine
from actors.commands.check_seen import log_of
from actors.factorial_view import FactorialView, factorial_view
from actors.ledger.reader import open_reader

__all__ = ["PairsLeft", "pairs_left"]


class PairsLeft(msgspec.Struct, frozen=True, kw_only=True):
    """decided: nothing is drawn any more. line: what is left, in words."""

    decided: bool
    line: Line


def pairs_left(workspace: Path) -> PairsLeft | None:
    """What its run.db tells; None: no schedule was fixed yet, or it cannot be read."""
    database = workspace / "run.db"
    if not database.exists():
        return None
    try:
        with open_reader(database, at_rest=not log_of(database).exists()) as reader:
            view = factorial_view(reader)
    except (sqlite3.Error, OSError):
        return None  # what is wrong with the file is told elsewhere
    if view is None:
        return None
    return PairsLeft(decided=view.run is not None, line=fine("schedule", _words(view)))


def _words(view: FactorialView) -> str:
    if view.run is not None:
        decided = f"the run has decided: {view.run.adopted} of {view.run.n_edits} edits adopted"
        return f"nothing is left to draw: {view.total('done')} pairs were, and {decided}"
    done, planned = view.total("done"), view.total("planned")
    return f"{done} of its {planned} pairs are drawn: at most {planned - done} are left"
