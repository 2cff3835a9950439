"""What a run that did not end has done, in a sentence, and what stands in its way. Reads only.

Never raises: it is asked when something else has gone wrong already.
"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from actors.commands.html.words import count
from actors.ledger.reader import open_reader
from protocol.rows import EpochRow, EvaluationRow, StepRow

__all__ = ["disk_full", "so_far"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS = ("No space left on device", "disk is full", "Disk quota exceeded")
"""An error that came from another actor is only words."""


def so_far(workspace: Path, epochs: int) -> str:
    """``Done so far: 1 of 3 epochs, 14 steps, ...``, with a blank before it; empty: unknown.

    epochs: as configured.
    """
    try:
        with open_reader(workspace / "run.db") as reader:
            whole = len(reader.rows(EpochRow))
            steps = reader.rows(StepRow)
            spent = reader.spent()
            begun = any(row.kind == "seed" for row in reader.rows(EvaluationRow))
    except (sqlite3.Error, OSError):
        return ""
    tokens = spent.prompt_tokens + spent.completion_tokens
    cost = f", ${spent.usd:,.2f}" if spent.usd else ""
    done = (
        f"Done so far: {whole} of {count(epochs, 'epoch')}, {count(len(steps), 'step')}, "
        f"{count(spent.calls, 'call')}, {_short(tokens)} tokens{cost}."
    )
    return f" {done} {_next(whole, epochs, begun, steps)}"


def _next(whole: int, epochs: int, begun: bool, steps: list[StepRow]) -> str:
    if not begun:
        return "Next: the seed package on val."
    if whole >= epochs:
        return "Next: the end of the run."
    here = sum(row.epoch == whole + 1 for row in steps)
    made = f", {count(here, 'step')} of which {'is' if here == 1 else 'are'} done" if here else ""
    return f"Next: epoch {whole + 1}{made}."


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:.0f}"


def disk_full(error: BaseException) -> bool:
    """Whether a disk without room is what lies below an error."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.errno in _FULL:
            return True
        if any(words in str(below) for words in _WORDS):
            return True
        below = below.__cause__ or below.__context__
    return False
