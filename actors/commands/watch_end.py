"""How a run stands that does not answer: by its lock, and by the last words of its log. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.monitor.board import text
from actors.places import as_called

__all__ = ["end_of", "next_line", "state_of"]

_FINISHED = ("done", "early_stop", "claims_void")
_LAST_WORDS = ("run.ended", "run.started", "run.resumed", "runtime.gave_up")

Plain = Mapping[str, object]


def end_of(news: Sequence[Plain]) -> tuple[str, str]:
    """``finished``, ``stopped``, ``failed`` or ``died``, and what more is known.

    news: the last events of a run that nobody works on any more.
    """
    last = next((event for event in reversed(news) if text(event, "event") in _LAST_WORDS), {})
    match text(last, "event"):
        case "run.ended":
            status = text(last, "status")
            if status == "failed":
                return "failed", text(last, "error")
            return ("finished" if status in _FINISHED else "stopped"), status
        case "runtime.gave_up":
            return "failed", text(last, "detail")
    return "died", "its process is gone and said no last word"


def state_of(holder: int | None, end: tuple[str, str]) -> str:
    """In words. holder: the process that holds the lock; None: nobody, and ``end`` counts."""
    if holder is not None:
        return f"process {holder} is at work there and does not answer"
    how, why = end
    return f"{how} ({why})" if why and why != how else how


def next_line(workspace: Path, how: str) -> str:
    """How such a run goes on; empty for one that is finished, or may be at work."""
    if how in ("", "finished"):
        return ""
    return as_called(f"go on with: bin/train --resume {shlex.quote(str(workspace))}")
