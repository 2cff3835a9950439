"""Actors that crash at random, many in one run: the end must be the undisturbed one.

    python -m tests.chaos.crashes --runs 20 --seed 0
    python -m tests.chaos.crashes --design factorial

Which actors, and at which of their messages, follows from the seed. An actor that crashes twice
over one and the same message may end the run (PoisonMessage, exit 1): it must then go on with
``--resume`` and end the same. Prints a table; exit 1 if any differs.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.chaos.comparing import DESIGNS, differing
from tests.chaos.invariants import broken
from tests.system.runs import (
    SMALL,
    command,
    environment,
    events,
    result_of,
    run_to_end,
    settings,
)

__all__ = ["crash_plan", "handled", "main", "run_crashing"]

MOST_PER_ACTOR = 4
"""One less than ``runtime.max_restarts``: a run that gives up as it should is no news."""


def handled(workspace: Path) -> dict[str, int]:
    """How many messages each actor has handled in an undisturbed run."""
    stats = [event["actors"] for event in events(workspace) if event["event"] == "runtime.stats"]
    assert stats, "a run says it when it stops"
    last = stats[-1]
    assert isinstance(last, list)
    return {row["actor"]: row["handled"] for row in last if row["handled"]}


def crash_plan(messages: Mapping[str, int], seed: int) -> tuple[str, ...]:
    """``actor@n``, two to fourteen of them, such that nobody crashes too often.

    The trainer has one message, which may crash once.
    """
    draw = random.Random(seed)
    chosen: Counter[str] = Counter()
    plan: set[str] = set()
    for actor in draw.choices(sorted(messages), k=draw.randint(2, 14)):
        if chosen[actor] < min(MOST_PER_ACTOR, messages[actor]):
            chosen[actor] += 1
            plan.add(f"{actor}@{draw.randint(1, messages[actor])}")
    return tuple(sorted(plan))


def run_crashing(
    workspace: Path, plan: Sequence[str], assignments: tuple[str, ...] = SMALL
) -> tuple[str, list[str]]:
    """A run with these crashes, gone on with if it ended early: how it went, what is broken."""
    given = (*assignments, f"runtime.inject_crash=[{', '.join(plan)}]")
    done = _run(*settings(given), "--workspace", str(workspace))
    how = "same"
    if done.returncode != 0:
        how = f"same, resumed after exit {done.returncode}"
        done = _run("--resume", str(workspace), "--set", "runtime.inject_crash=[]")
    if done.returncode != 0:
        return "NOT RESUMED", [f"exit {done.returncode}: {done.stderr[-2000:]}"]
    return how, broken(workspace)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(), capture_output=True, text=True, check=False
    )


def main(arguments: Sequence[str]) -> int:
    """Run the sweep; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.crashes", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--design", choices=sorted(DESIGNS), default="ladder")
    known = parser.parse_args(arguments)
    given = DESIGNS[known.design]
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run_to_end(*settings(given), "--workspace", str(folder / "whole"))
        expected, messages = result_of(folder / "whole"), handled(folder / "whole")
        for seed in range(known.seed, known.seed + known.runs):
            workspace, plan = folder / f"c{seed}", crash_plan(messages, seed)
            how, problems = run_crashing(workspace, plan, given)
            if how != "NOT RESUMED":
                problems += differing(result_of(workspace), expected)
            verdict = how if not problems else f"DIFFERS {'; '.join(problems)}"
            verdicts[verdict.partition(" ")[0].rstrip(",")] += 1
            sys.stdout.write(f"seed {seed}: {' '.join(plan)}\n    {verdict}\n")
            sys.stdout.flush()
            shutil.rmtree(workspace)
    sys.stdout.write(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) + "\n")
    return 0 if set(verdicts) <= {"same"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
