"""Useless edits through the factorial gate's actors: does a run adopt one more often than q says?

    python -m tests.bench.null_factorial --runs 2000 --jobs 2
    python -m tests.bench.null_factorial --world drift --runs 200 --json

Every run is a whole training of the trainer's factorial epochs, the gate actor and the ledger's own
statements and rows (``tests.gate.factorial_null``): 24 edits of two classes, 91 pairs, coins read
back from the ledger. By theorem at most a share q adopts any, whatever the endpoint does; the
sentinels may void one run in a hundred. Rows marked ``!`` are worlds that are broken on purpose,
to show that this test would find them.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from tests.gate.factorial_broken import BROKEN, broken_training
from tests.gate.factorial_endpoint import WORLDS
from tests.gate.factorial_null import Come, training

__all__ = ["Measured", "Q", "main", "measure"]

Q = 0.15
"""Of the profile balanced."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a world. adopting: share that adopted anything; error: its Monte-Carlo error.

    voided: share that a sentinel voided. adopted, dropped, void: edits and pairs per run.
    """

    world: str
    runs: int
    adopting: float
    error: float
    voided: float
    adopted: float
    dropped: float
    void: float
    seconds: float


def measure(world: str, n_runs: int, jobs: int = 1) -> Measured:
    """The runs of the first seeds, of a world or of a broken one (``!name``)."""
    begun = time.process_time()
    seeds = range(1, n_runs + 1)
    if jobs == 1:
        runs = [_one(world, seed) for seed in seeds]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            runs = list(pool.map(partial(_one, world), seeds, chunksize=20))
    adopting = _mean(runs, lambda run: run.adopted > 0)
    return Measured(
        world=world,
        runs=n_runs,
        adopting=adopting,
        error=math.sqrt(adopting * (1 - adopting) / n_runs),
        voided=_mean(runs, lambda run: not run.ok),
        adopted=_mean(runs, lambda run: run.adopted),
        dropped=_mean(runs, lambda run: run.dropped),
        void=_mean(runs, lambda run: run.void),
        seconds=time.process_time() - begun,
    )


def _one(world: str, seed: int) -> Come:
    if world.startswith("!"):
        return broken_training(seed, world[1:])
    return training(seed, WORLDS[world])


def _mean(runs: Sequence[Come], value: Callable[[Come], float]) -> float:
    return math.fsum(value(run) for run in runs) / len(runs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns 1 if a world exceeds q by three standard errors."""
    names = [*WORLDS, *(f"!{name}" for name in BROKEN)]
    parser = argparse.ArgumentParser(prog="python -m tests.bench.null_factorial")
    parser.add_argument("--runs", type=int, default=2000, help="per world (default: 2000)")
    parser.add_argument("--world", action="append", choices=names, help="only this one")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    given = parser.parse_args(arguments)
    if not given.json:
        sys.stdout.write(_HEAD)
    limited = True
    for name in given.world or names:
        honest = not name.startswith("!")
        row = measure(name, given.runs if honest else max(1, given.runs // 20), given.jobs)
        told = msgspec.json.encode(row).decode() if given.json else _line(row)
        sys.stdout.write(told + "\n")
        sys.stdout.flush()
        limit = Q + 3 * math.sqrt(Q * (1 - Q) / row.runs)
        limited = limited and (row.adopting <= limit or not honest)
    return 0 if limited else 1


_HEAD = (
    "| world | runs | adopting (se) | q | voided | adopted | dropped | void pairs |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def _line(row: Measured) -> str:
    return (
        f"| {row.world} | {row.runs} | {row.adopting:.4f} ({row.error:.4f}) | {Q} "
        f"| {row.voided:.4f} | {row.adopted:.3f} | {row.dropped:.2f} | {row.void:.1f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
