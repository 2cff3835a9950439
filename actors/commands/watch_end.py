"""How a run stands that does not answer: by its lock, and by the last words of its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.monitor.board import text
from actors.places import launcher, shown_path

__all__ = ["end_of", "goes_on", "next_line", "state_of"]

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


def goes_on(how: str) -> bool:
    """Whether there is more to do: not of a run that is finished, or may be at work."""
    return how not in ("", "finished")


def next_line(workspace: Path, how: str, *, refused: bool) -> str:
    """The command by which such a run goes on, or by which to see why it does not; else empty.

    refused: ``bin/trm status`` says that --resume would be.
    """
    if not goes_on(how):
        return ""
    place = shown_path(workspace)
    if refused:
        return f"--resume is refused; why: {launcher('status')} {place}"
    return f"go on with: {launcher()} --resume {place}"
