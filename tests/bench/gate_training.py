"""Simulated training under one rule after another, where the truth of every edit is known.

    python -m tests.bench.gate_training
    python -m tests.bench.gate_training --seeds 400 --rule strict --rule always --json
    python -m tests.bench.gate_training --seeds 100 --slow-seeds 40 --write docs

The world is ``planted``: no agent, no server, no process. Every seed is one training of 12 classes
(300 units) over 3 epochs with 4 candidates per class and epoch, the same world, candidates and luck
under every rule. Printed per rule: the final true gain in accuracy, what was accepted, and how many
answers it took. ``docs/gate-training.md`` says how the numbers were made and what they show.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from actors.commands.simulated.gate_rule import Gate
from actors.commands.simulated.planted import STUDY, Setting, plant
from actors.commands.simulated.rules import Rule, Strict
from actors.commands.simulated.training import Training, train
from protocol.settings import GateSettings
from tests.bench.training_figure import Bar, Panel, figure
from tests.bench.training_rules import Always, McNemar, Minibatch

__all__ = ["RULES", "Row", "drawing", "main", "run", "summarise", "table"]

_NEVER_FRESH = 10**9


def gate_with(
    profile: Literal["balanced", "growth", "audit"] = "balanced",
    *,
    small: float = 0.2,
    large: float = 0.1,
    draws_small: int = 3,
    fresh_after: int = 4,
) -> GateSettings:
    """The defaults of the configuration, but for what is given."""
    return GateSettings(
        profile=profile,
        alpha_small=small,
        alpha_large=large,
        small_units=24,
        seed_draw=True,
        draws_small=draws_small,
        draws_large=1,
        ema_decay=0.7,
        max_missing_share=0.05,
        futility_power=0.1,
        harm_e=10.0,
        missing_retries=2,
        fresh_after=fresh_after,
    )


def _plain(small: float, large: float) -> GateSettings:
    return gate_with(small=small, large=large, draws_small=1, fresh_after=_NEVER_FRESH)


def _one_draw(small: float, large: float) -> Gate:
    return Gate(_plain(small, large))


RULES: dict[str, Callable[[], Rule]] = {
    "always": Always,
    "minibatch:3": lambda: Minibatch(3),
    "minibatch:8": lambda: Minibatch(8),
    "minibatch:20": lambda: Minibatch(20),
    "strict": Strict,
    "mcnemar:.1": lambda: McNemar("0.1"),
    "mcnemar:.2": lambda: McNemar("0.2"),
    "one draw .1": lambda: _one_draw(0.1, 0.1),
    "one draw .1, early": lambda: Gate(_plain(0.1, 0.1), early_power=True),
    "one draw .2": lambda: _one_draw(0.2, 0.2),
    "one draw .2/.1": lambda: _one_draw(0.2, 0.1),
    "one draw .3": lambda: _one_draw(0.3, 0.3),
    "one draw .3 + .3": lambda: Gate(gate_with("audit", draws_small=1, fresh_after=_NEVER_FRESH)),
    "one draw .3 + .3, renewed": lambda: Gate(
        gate_with("audit", draws_small=1, fresh_after=_NEVER_FRESH), renew=True
    ),
    "balanced": lambda: Gate(gate_with("balanced")),
    "growth": lambda: Gate(gate_with("growth")),
    "audit": lambda: Gate(gate_with("audit")),
}
"""Fresh rules for a training, from the most credulous on.

``one draw``: the gate as the study simulated it, by its levels for small and large classes (two
stages: ``.3 + .3``), with one baseline draw everywhere and a snapshot that is kept until an accept;
``early`` and ``renewed`` undo two differences from it (see ``gate_rule.Gate``).
The last three are the profiles as they are configured by default.
"""

SLOW = ("balanced", "growth", "audit")
"""Three baseline draws per question of a small class: futility is sampled, seconds a training."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One rule over all seeds: means with their standard errors.

    sd: of the gain between trainings. worse: share of trainings that end below their start.
    false_rate: accepted useless and harmful candidates per such candidate that was tested.
    """

    rule: str
    seeds: int
    gain: tuple[float, float]
    sd: float
    worse: float
    small_gain: tuple[float, float]
    useless: tuple[float, float]
    harmful: tuple[float, float]
    helpful: tuple[float, float]
    made: tuple[float, float, float]
    tests: float
    false_share: float
    answers: tuple[float, float]


def summarise(rule: str, trainings: Sequence[Training]) -> Row:
    """Means over trainings. Raises statistics.StatisticsError for fewer than two."""
    gains = [one.gain for one in trainings]
    kinds = [_mean([float(one.accepted[kind]) for one in trainings]) for kind in range(3)]
    made = [statistics.fmean(one.made[kind] for one in trainings) for kind in range(3)]
    total = sum(mean for mean, _ in kinds)
    return Row(
        rule=rule,
        seeds=len(trainings),
        gain=_mean(gains),
        sd=statistics.stdev(gains),
        worse=statistics.fmean(gain < 0 for gain in gains),
        small_gain=_mean([one.small_gain for one in trainings]),
        useless=kinds[0],
        harmful=kinds[1],
        helpful=kinds[2],
        made=(made[0], made[1], made[2]),
        tests=statistics.fmean(one.tests for one in trainings),
        false_share=(kinds[0][0] + kinds[1][0]) / total if total else 0.0,
        answers=_mean([float(one.evaluations) for one in trainings]),
    )


def run(seeds: Mapping[str, int], setting: Setting = STUDY) -> list[Row]:
    """Rules over the same worlds, from seed 1 on; what is done is told on stderr.

    seeds: how many, by rule.
    """
    rows = []
    for name, n_seeds in seeds.items():
        started = time.monotonic()
        worlds = (plant(seed, setting) for seed in range(1, n_seeds + 1))
        rows.append(summarise(name, [train(world, RULES[name]()) for world in worlds]))
        sys.stderr.write(f"{name}: {n_seeds} trainings, {time.monotonic() - started:.1f} s\n")
    return rows


def table(rows: Sequence[Row]) -> str:
    """Markdown. Means and, in brackets, Monte-Carlo standard errors."""
    made = rows[0].made
    lines = [
        "| rule | trainings | final gain, points | sd | ends worse | small classes "
        f"| useless accepted of {made[0]:.0f} | harmful of {made[1]:.0f} "
        f"| helpful of {made[2]:.0f} | false share | answers |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row.rule,
            str(row.seeds),
            f"{row.gain[0]:+.1f} ({row.gain[1]:.1f})",
            f"{row.sd:.1f}",
            f"{row.worse:.3f}",
            f"{row.small_gain[0]:+.1f} ({row.small_gain[1]:.1f})",
            *(
                f"{mean:.2f} ({error:.2f})"
                for mean, error in (row.useless, row.harmful, row.helpful)
            ),
            f"{row.false_share:.2f}",
            f"{row.answers[0]:.0f} ({row.answers[1]:.0f})",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def drawing(rows: Sequence[Row]) -> str:
    """The figure: gain, false accepts and answers of every rule, with twice the standard error."""
    gain = Panel(
        title="final true gain, points",
        bars=tuple(Bar(parts=(row.gain[0],), error=row.gain[1]) for row in rows),
        colours=("#1a7f37",),
        digits=1,
    )
    false = Panel(
        title="false accepts per training",
        bars=tuple(
            Bar(
                parts=(row.harmful[0], row.useless[0]),
                error=math.hypot(row.harmful[1], row.useless[1]),
            )
            for row in rows
        ),
        colours=("#cf222e", "#d4a72c"),
        legend=("harmful", "useless"),
        digits=1,
    )
    answers = Panel(
        title="answers per training",
        bars=tuple(Bar(parts=(row.answers[0],), error=row.answers[1]) for row in rows),
        colours=("#0969da",),
    )
    made = rows[0].made
    caption = (
        f"{sum(made):.0f} candidates per training ({made[0]:.0f} useless, {made[1]:.0f} harmful, "
        f"{made[2]:.0f} helpful); lines: two standard errors"
    )
    return figure([row.rule for row in rows], (gain, false, answers), caption)


def _mean(values: Sequence[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.gate_training",
        description="Trains in the planted world under each rule.",
    )
    parser.add_argument("--seeds", type=int, default=100, help="trainings per rule (default: 100)")
    parser.add_argument(
        "--slow-seeds",
        type=int,
        default=0,
        help=f"trainings of {', '.join(SLOW)}, which take seconds each (default: 0, left out)",
    )
    parser.add_argument(
        "--rule", action="append", choices=list(RULES), help="only this one; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="one JSON array on stdout")
    parser.add_argument(
        "--rows",
        action="append",
        type=Path,
        metavar="FILE",
        help="train nothing: take the rows of an earlier --json; may be repeated",
    )
    parser.add_argument(
        "--write", type=Path, metavar="DIR", help="gate-training.svg with the figure goes there"
    )
    given = parser.parse_args(arguments)
    if given.rows:
        rows = [
            row
            for file in given.rows
            for row in msgspec.json.decode(file.read_bytes(), type=list[Row])
        ]
    else:
        rows = run(_seeds_by_rule(parser, given))
    sys.stdout.write(msgspec.json.encode(rows).decode() + "\n" if given.json else table(rows))
    if given.write is not None:
        (given.write / "gate-training.svg").write_text(drawing(rows), encoding="utf-8")
    return 0


def _seeds_by_rule(parser: argparse.ArgumentParser, given: argparse.Namespace) -> dict[str, int]:
    chosen: list[str] = given.rule or list(RULES)
    seeds = {name: given.slow_seeds if name in SLOW else given.seeds for name in chosen}
    seeds = {name: n for name, n in seeds.items() if n}
    if not seeds or min(seeds.values()) < 2:
        parser.error("--seeds, --slow-seeds: at least 2, or there is no error to tell")
    return seeds


if __name__ == "__main__":
    sys.exit(main())
