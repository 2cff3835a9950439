"""Simulated training under the factorial gate, beside the study and other rules.

    python -m tests.bench.factorial_training table --seeds 100
    python -m tests.bench.factorial_training lemma --runs 2000 --world drift --json

``table`` prints the final true gain beside what the study found, and what other rules come to on
the same worlds. ``lemma`` lets nothing but useless edits compete and counts the runs that adopt
any: by theorem at most a share q, whatever the endpoint does. A run is ``factorial_run``'s.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

from actors.commands.simulated.planted import STUDY, Setting, plant
from actors.commands.simulated.training import Training, train
from tests.bench.factorial_run import BUDGET, QS, WORLDS, simulate
from tests.bench.gate_training import RULES

__all__ = ["NULL", "LemmaRow", "lemma", "main", "table"]

NULL = msgspec.structs.replace(STUDY, sizes=(8, 12, 20, 40), useless=1.0, harmful=0.0)
"""Only useless edits: 4 classes, 80 units, 48 edits."""

_STUDY_ROWS = {
    "always": "-0.4 | .495 | 85.30/29.76/28.9 | .80 | 0",
    "minibatch:8": "+12.1 | .010 | 28.91/4.66/16.4 | .67 | 2119",
    "minibatch:20": "+16.0 | .000 | 32.72/3.87/19.7 | .65 | 4324",
    "strict": "+15.7 | .000 | 13.20/0.81/14.0 | .50 | 3900",
    "one draw .3 + .3": "+10.8 | .000 | 0.85/0.03/6.5 | .12 | 2973",
    "factorial q=3/20": "+16.6 | .000 | 1.30/0.01/14.0 | .08 | 3852",
    "factorial q=1/5": "+17.1 | .000 | 1.97/0.01/15.2 | .11 | 3852",
    "factorial q=3/20, alternatives": "+12.7 | - | - | .09 | 3852",
}


class LemmaRow(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one world in which nothing but useless edits competed.

    adopting: share of the runs that adopted any. voided: share that a sentinel voided.
    """

    world: str
    q: str
    runs: int
    adopting: float
    error: float
    adopted_per_run: float
    voided: float


def lemma(
    world: str, n_runs: int, setting: Setting = NULL, budget: int | None = None
) -> list[LemmaRow]:
    """The share of runs with any adoption where no edit does anything, one row per q.

    budget: None: as many draws per unit as in the study's main world.
    """
    units, studied = sum(setting.sizes), sum(STUDY.sizes)
    allowed = BUDGET * units // studied if budget is None else budget
    trainings = [
        simulate(plant(seed, setting), WORLDS[world], budget=allowed)
        for seed in range(1, n_runs + 1)
    ]
    rows = []
    for place, q in enumerate(QS):
        adopted = [sum(run[place].accepted) for run in trainings]
        share = statistics.fmean(n > 0 for n in adopted)
        rows.append(
            LemmaRow(
                world=world,
                q=str(q),
                runs=n_runs,
                adopting=share,
                error=math.sqrt(float(q * (1 - q)) / n_runs),
                adopted_per_run=statistics.fmean(adopted),
                voided=statistics.fmean(not run[place].sentinels_ok for run in trainings),
            )
        )
    return rows


def _table_line(rule: str, trainings: Sequence[Training]) -> str:
    gains = [one.gain for one in trainings]
    kinds = [statistics.fmean(one.accepted[kind] for one in trainings) for kind in range(3)]
    false = [one.false_share for one in trainings]
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    cells = [
        rule,
        str(len(trainings)),
        f"{statistics.fmean(gains):+.1f} ({error:.1f})",
        f"{statistics.fmean(gain < 0 for gain in gains):.3f}",
        f"{kinds[0]:.2f}/{kinds[1]:.2f}/{kinds[2]:.1f}",
        f"{statistics.fmean(false):.3f}",
        f"{statistics.fmean(one.evaluations for one in trainings):.0f}",
        _STUDY_ROWS.get(rule, "- | - | - | - | -"),
    ]
    return f"| {' | '.join(cells)} |"


def table(n_seeds: int, beside: Sequence[str], setting: Setting = STUDY) -> str:
    """Markdown: the factorial gate and other rules on the same worlds, with the study's numbers."""
    worlds = [plant(seed, setting) for seed in range(1, n_seeds + 1)]
    lines = [
        "| rule | trainings | final gain, points | ends worse | adopted useless/harmful/helpful "
        "| false share | draws | study: gain | worse | adopted | FDR | draws |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in beside:
        lines.append(_table_line(name, [train(world, RULES[name]()) for world in worlds]))
        _told(f"{name} done")
    plain = [simulate(world) for world in worlds]
    for place, q in enumerate(QS):
        lines.append(_table_line(f"factorial q={q}", [run[place] for run in plain]))
    _told("factorial done")
    grouped = [simulate(world, qs=QS[:1], alternatives=2)[0] for world in worlds]
    lines.append(_table_line("factorial q=3/20, alternatives", grouped))
    voided = statistics.fmean(not run[0].sentinels_ok for run in plain)
    return "\n".join(lines) + f"\n\nruns voided by a sentinel: {voided:.3f}\n"


def _told(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.factorial_training",
        description="Trains in the planted world under the factorial gate.",
    )
    modes = parser.add_subparsers(required=True)
    wide = modes.add_parser("table", help="gain and false adoptions beside the study's")
    wide.add_argument("--seeds", type=int, default=100, help="trainings (default: 100)")
    wide.add_argument(
        "--beside",
        action="append",
        choices=list(RULES),
        help="another rule on the same worlds; may be repeated (default: always, strict)",
    )
    wide.set_defaults(run=_run_table)
    null = modes.add_parser("lemma", help="share of runs that adopt any useless edit")
    null.add_argument("--runs", type=int, default=2000, help="per world (default: 2000)")
    null.add_argument("--world", action="append", choices=list(WORLDS), help="only this one")
    null.add_argument("--json", action="store_true", help="one JSON array on stdout")
    null.set_defaults(run=_run_lemma)
    given = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = given.run
    return run(given)


def _run_table(given: argparse.Namespace) -> int:
    sys.stdout.write(table(given.seeds, given.beside or ["always", "strict"]))
    return 0


def _run_lemma(given: argparse.Namespace) -> int:
    rows = []
    for world in given.world or list(WORLDS):
        rows += lemma(world, given.runs)
        _told(f"{world} done")
    if given.json:
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
        return 0
    sys.stdout.write("| world | q | runs | adopting | se at q | adopted per run | voided |\n")
    sys.stdout.write("|---|---|---|---|---|---|---|\n")
    for row in rows:
        sys.stdout.write(
            f"| {row.world} | {row.q} | {row.runs} | {row.adopting:.4f} | {row.error:.4f} "
            f"| {row.adopted_per_run:.3f} | {row.voided:.4f} |\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
