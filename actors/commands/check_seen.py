"""What a run that is under way knows better than any forecast. Reads its run.db, never raises."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from actors.commands.splitting import Split
from actors.gate.package_power import seed_pass_power
from actors.ledger.reader import open_reader
from protocol.rows import EvaluationRow

__all__ = ["log_of", "seen_by_run"]


def seen_by_run(split: Split, folder: Path) -> Split:
    """The split, where the run has answered val under the seed package, with that count of val.

    folder: a workspace, or a seed, which has no run.db.
    """
    database = folder / "run.db"
    if not database.exists():
        return split
    try:
        with open_reader(database, at_rest=not log_of(database).exists()) as reader:
            val = seed_pass_power(reader.rows(EvaluationRow))
    except (sqlite3.Error, OSError):
        return split  # the estimate stands; what is wrong with the file is told elsewhere
    if val is None:
        return split
    facts = msgspec.structs.replace(split.facts, val=val)
    return msgspec.structs.replace(split, facts=facts)


def log_of(database: Path) -> Path:
    """Without it the database is at rest: read so, no file appears beside it."""
    return database.with_name(f"{database.name}-wal")
