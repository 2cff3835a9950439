"""The product under a wall clock that jumps in the middle of a run.

    python -m tests.chaos.clock --reads FILE --after N --days D -- train --workspace DIR ...
    python -m tests.chaos.clock --sweep                      both directions, several moments

After the clock was read N times it stands D days later (or earlier). What reads the wall clock is
found by itself: every ``datetime`` that a module of the product has imported, and ``time.time``.
How often it was read in all is written to FILE. The simulator's clock is let be.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from actors.ledger.reader import open_reader
from actors.main import main as product
from protocol.rows import AttemptRow, TraceRow
from tests.chaos.comparing import differing, undisturbed
from tests.chaos.invariants import broken
from tests.system.runs import SMALL, environment, result_of, settings

__all__ = ["Jump", "install", "lost_answers", "main", "moved", "span"]


class Jump:
    """How far the clock is off by now. after: readings before it jumps. by: how far."""

    def __init__(self, after: int, by: timedelta) -> None:
        self.reads = 0
        self._after = after
        self._by = by

    def offset(self) -> timedelta:
        """Count a reading."""
        self.reads += 1
        return self._by if self.reads > self._after else timedelta(0)


def install(jump: Jump) -> None:
    """Put the clock into every loaded module of the product."""

    class Moved(datetime):
        """``datetime`` with another now."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # no subclass
            return datetime.now(tz) + jump.offset()

    real: Callable[[], float] = time.time  # noqa: TID251  # it is what is replaced
    setattr(time, "time", lambda: real() + jump.offset().total_seconds())  # noqa: B010
    for name, module in list(sys.modules.items()):
        if name.startswith("actors.") and getattr(module, "datetime", None) is datetime:
            setattr(module, "datetime", Moved)  # noqa: B010  # mypy knows no such attribute


def moved(
    workspace: Path, *arguments: str, after: int, days: float
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run ``bin/train``'s command with these arguments; how it ended, and the readings."""
    reads = workspace.with_name(f"{workspace.name}.reads")
    given = [f"--reads={reads}", f"--after={after}", f"--days={days}", "--", "train", *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.clock", *given],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done, int(reads.read_text(encoding="ascii"))


def lost_answers(workspace: Path) -> int:
    """Steps of the agent minus answers in the accounts; 0 unless a row replaced another."""
    with open_reader(workspace / "run.db") as reader:
        asked = [row for row in reader.rows(AttemptRow) if row.role == "search"]
        steps = len(reader.rows(TraceRow))
    return steps - sum(row.outcome in ("ok", "cached") for row in asked)


def span(workspace: Path) -> timedelta:
    """Between the first and the last time in ``attempts``."""
    with open_reader(workspace / "run.db") as reader:
        times = [datetime.fromisoformat(row.started) for row in reader.rows(AttemptRow)]
    return max(times) - min(times)


def _problems(workspace: Path, days: float, ttl_s: int) -> list[str]:
    given = (*SMALL, f"cache.ttl_s={ttl_s}")
    fresh = [*settings(given), "--workspace", str(workspace)]
    done, reads = moved(workspace, *fresh, after=800, days=days)
    if done.returncode != 0:
        return [f"exit {done.returncode}: {done.stderr[-2000:]}"]
    found = broken(workspace)
    if reads <= 800 or span(workspace) < timedelta(days=abs(days) - 0.1):
        found.append(f"the clock did not jump: {reads} readings, {span(workspace)}")
    if lost := lost_answers(workspace):
        found.append(f"{lost} answers are not in the accounts")
    return found


def _sweep() -> int:
    """Both directions, with entries that outlive the jump and with entries that do not."""
    bad = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        expected = undisturbed(folder / "whole", SMALL)
        for days in (2, -2, 40, -40):
            for ttl_s in (86400, 2592000):
                workspace = folder / f"run{days}-{ttl_s}"
                problems = _problems(workspace, days, ttl_s)
                if (workspace / "run.db").exists():
                    problems += differing(result_of(workspace), expected)
                bad += bool(problems)
                said = "; ".join(problems) or "same"
                sys.stdout.write(f"{days:+} days, entries live {ttl_s // 86400} days: {said}\n")
    return 1 if bad else 0


def main(arguments: Sequence[str]) -> int:
    """Run the product under the clock, or the sweep; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.clock")
    parser.add_argument("--reads", type=Path, help="the file for the number of readings")
    parser.add_argument("--after", type=int, default=0, help="readings before the jump")
    parser.add_argument("--days", type=float, default=2.0, help="how far; negative: back")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("command", nargs="*", help="after --: what actors.main is given")
    known = parser.parse_args(arguments)
    if known.sweep:
        return _sweep()
    import actors.commands.train  # noqa: F401  # all that reads a clock is to be loaded

    jump = Jump(known.after, timedelta(days=known.days))
    install(jump)
    code = product(known.command)
    known.reads.write_text(str(jump.reads), encoding="ascii")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
