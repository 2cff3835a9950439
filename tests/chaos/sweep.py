"""Dies at every kind of durable action, resumes, and holds the end against the undisturbed run.

    python -m tests.chaos.sweep                     every label, first and last, before and after
    python -m tests.chaos.sweep --only "run.db"     labels that hold these words
    python -m tests.chaos.sweep --points 5          five of each label, evenly over the run
    python -m tests.chaos.sweep --random 100        that many kill -9 at random moments instead
    python -m tests.chaos.sweep --design factorial  a run under gate.design=factorial

A workspace that died before it had its name is no workspace: the same command is given again,
else ``--resume``. Whatever was killed must end with the same documents, decisions, evaluation
rows, outcomes and traces as the run that nobody disturbed, and no row of it may be wrong or double
(``invariants``); of the factorial gate's pairs nothing that the dead run had written may be drawn
anew (``kept``). Prints a table; exit 1 if any differs.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.chaos.comparing import DESIGNS, differing
from tests.chaos.invariants import broken
from tests.chaos.kept import changed, written
from tests.system.runs import SMALL, command, environment, result_of, settings

__all__ = ["Kill", "go_on", "kill_at", "kills", "main", "run_killed", "undisturbed"]

KILLED = -9


class Kill(msgspec.Struct, frozen=True):
    """Where a process dies: the ``nth`` time that ``label`` is reached."""

    label: str
    nth: int
    when: str


def undisturbed(
    folder: Path, assignments: tuple[str, ...] = SMALL
) -> tuple[dict[str, object], Counter[str], float]:
    """The run that nobody disturbs: its result, the points it passed, its seconds."""
    reached = folder / "reached.txt"
    workspace = folder / "whole"
    began = time.monotonic()
    done = subprocess.run(
        [*_failing(reached), "--", *_fresh(workspace, assignments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"
    labels = Counter(reached.read_text(encoding="utf-8").replace("whole", "WORKSPACE").splitlines())
    return result_of(workspace), labels, time.monotonic() - began


def kills(labels: Counter[str], only: str, n_points: int = 2) -> Iterator[Kill]:
    """The first and the last time that each label is reached, before and after the action.

    n_points: how many times of each label, from the first to the last and evenly between.
    """
    for label, times in sorted(labels.items()):
        if only in label:
            gaps = max(1, n_points - 1)
            for nth in sorted({1 + (times - 1) * place // gaps for place in range(gaps + 1)}):
                for when in ("before", "after"):
                    yield Kill(label, nth, when)


def run_killed(kill: Kill, workspace: Path, assignments: tuple[str, ...] = SMALL) -> int:
    """Begin a run that dies; returns its exit code, -9 unless the point was not reached."""
    label = kill.label.replace("WORKSPACE", workspace.name)
    at = ["--at", label, "--nth", str(kill.nth), "--when", kill.when]
    reached = workspace.with_name(f"{workspace.name}.txt")
    return subprocess.run(
        [*_failing(reached), *at, "--", *_fresh(workspace, assignments)],
        env=environment(),
        capture_output=True,
        check=False,
    ).returncode


def go_on(workspace: Path, assignments: tuple[str, ...] = SMALL) -> str:
    """Resume, or begin where there is nothing to resume. Returns what went wrong, or nothing."""
    again = (
        ["--resume", str(workspace)] if workspace.exists() else _fresh(workspace, assignments)[1:]
    )
    done = subprocess.run(
        command(*again), env=environment(), capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-2000:]}"


def _failing(reached: Path) -> list[str]:
    return [sys.executable, "-m", "tests.chaos.failpoints", str(reached)]


def _fresh(workspace: Path, assignments: tuple[str, ...]) -> list[str]:
    return ["train", *settings(assignments), "--workspace", str(workspace)]


def kill_at(workspace: Path, after_s: float, assignments: tuple[str, ...] = SMALL) -> int:
    """Begin a run and kill it ``after_s`` seconds later; returns its exit code."""
    process = subprocess.Popen(
        command(*_fresh(workspace, assignments)[1:]),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=after_s)
    process.kill()
    return process.wait()


def _tried(
    name: str,
    workspace: Path,
    code: int,
    expected: dict[str, object],
    assignments: tuple[str, ...],
) -> tuple[str, str]:
    """Go on and compare; the verdict in a word or two."""
    before = written(workspace)
    problem = go_on(workspace, assignments)
    if problem:
        return name, f"NOT RESUMED {problem}"
    wrong = [
        *differing(result_of(workspace), expected),
        *broken(workspace),
        *changed(workspace, before),
    ]
    shutil.rmtree(workspace)
    if wrong:
        return name, f"DIFFERS {'; '.join(wrong)}"
    return name, "same" if code == KILLED else f"same (not killed: exit {code})"


def main(arguments: Sequence[str]) -> int:
    """Run the sweep; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.sweep", description=__doc__)
    parser.add_argument("--only", default="", help="labels that hold these words")
    parser.add_argument("--points", type=int, default=2, help="of each label (default: 2)")
    parser.add_argument("--design", choices=sorted(DESIGNS), default="ladder")
    parser.add_argument("--random", type=int, metavar="N", help="N kills at random moments")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    known = parser.parse_args(arguments)
    given = DESIGNS[known.design]
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        expected, labels, seconds = undisturbed(folder, given)
        print(f"undisturbed: {seconds:.1f} s, {labels.total()} durable actions", flush=True)
        if known.random is None:
            for number, kill in enumerate(kills(labels, known.only, known.points)):
                workspace = folder / f"k{number}"
                code = run_killed(kill, workspace, given)
                name = f"{kill.when:>6} {kill.label} #{kill.nth}"
                verdicts[_say(*_tried(name, workspace, code, expected, given))] += 1
        else:
            moments = random.Random(known.seed)
            for number in range(known.random):
                workspace = folder / f"r{number}"
                moment = moments.uniform(0.5, seconds)
                code = kill_at(workspace, moment, given)
                name = f"at {moment:6.2f} s"
                verdicts[_say(*_tried(name, workspace, code, expected, given))] += 1
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return 0 if set(verdicts) <= {"same"} else 1


def _say(name: str, verdict: str) -> str:
    print(f"{name:<70} {verdict}", flush=True)
    return verdict.split()[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
