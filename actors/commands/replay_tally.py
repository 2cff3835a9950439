"""Counting what every rule would have accepted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec

from actors.commands.replay_reading import StoredRun
from actors.commands.replay_rules import Redecided, ReplayRule, parse_rule, questions_of, redecide
from actors.twin.truth import Worth, classify

__all__ = ["Replayed", "ReplayedTest", "RuleTally", "replayed"]


class RuleTally(msgspec.Struct, frozen=True, kw_only=True):
    """One rule over all tests.

    accepted to unknown: tests by verdict. helpful, useless, harmful: what the accepted ones truly
    are; false_accepts: the latter two; all None where no truth is known.
    wins, losses: units that the accepted ones won and lost, of those the rule looked at.
    short: of a minibatch: tests whose whole ladder has fewer questions than it asks for.
    """

    rule: str
    tests: int
    accepted: int
    rejected: int
    untestable: int
    undecided: int
    unknown: int
    helpful: int | None
    useless: int | None
    harmful: int | None
    false_accepts: int | None
    wins: int
    losses: int
    short: int


class ReplayedTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test. stored: the run's verdict. gain: planted, in accuracy; None: not known."""

    run_key: str
    task_type: str
    in_sample: bool
    stored: str
    evaluated: int
    n_units: int
    gain: float | None
    truly: str | None
    verdicts: dict[str, Redecided]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A run under every rule.

    compared, same: tests that the gate, as the run was configured, decides again, and those of
    them on which it comes to the stored verdict. longest: questions of the longest ladder.
    lost: run_key -> why it cannot be rebuilt.
    """

    workspace: str
    profile: str
    tests: int
    identical: int
    compared: int
    same: int
    longest: int
    differing: tuple[str, ...]
    lost: dict[str, str]
    rules: tuple[RuleTally, ...]
    decisions: tuple[ReplayedTest, ...]


def replayed(workspace: Path, run: StoredRun, rules: Sequence[ReplayRule]) -> Replayed:
    """Every rule on every test; the gate itself is always compared with what is stored."""
    own = parse_rule("gate", run.config.gate)
    tests = []
    differing = []
    for test in run.tests:
        row = test.row
        if redecide(own, test).verdict != row.verdict:
            differing.append(row.run_key)
        gain = run.gains.get(row.run_key)
        tests.append(
            ReplayedTest(
                run_key=row.run_key,
                task_type=row.task_type,
                in_sample=row.in_sample,
                stored=row.verdict,
                evaluated=row.evaluated,
                n_units=row.n_units,
                gain=gain,
                truly=None if gain is None else classify(gain),
                verdicts={rule.name: redecide(rule, test) for rule in rules},
            )
        )
    sizes = [questions_of(test) for test in run.tests]
    return Replayed(
        workspace=str(workspace),
        profile=run.config.gate.profile,
        tests=len(tests),
        identical=run.identical,
        compared=len(tests),
        same=len(tests) - len(differing),
        longest=max(sizes, default=0),
        differing=tuple(differing),
        lost=run.lost,
        rules=tuple(_tally(rule, tests, sizes, planted=bool(run.gains)) for rule in rules),
        decisions=tuple(tests),
    )


def _tally(
    rule: ReplayRule, tests: Sequence[ReplayedTest], sizes: Sequence[int], *, planted: bool
) -> RuleTally:
    """sizes: questions of each test's ladder."""
    counted = Counter(test.verdicts[rule.name].verdict for test in tests)
    taken = [test for test in tests if test.verdicts[rule.name].verdict == "accept"]
    truly = Counter(test.truly for test in taken)
    kinds = {name: truly[name] if planted else None for name in get_args(Worth)}
    return RuleTally(
        rule=rule.name,
        tests=len(tests),
        accepted=counted["accept"],
        rejected=counted["reject"],
        untestable=counted["untestable"],
        undecided=counted["undecided"],
        unknown=counted["unknown"],
        helpful=kinds["helpful"],
        useless=kinds["useless"],
        harmful=kinds["harmful"],
        false_accepts=truly["useless"] + truly["harmful"] if planted else None,
        wins=sum(test.verdicts[rule.name].wins for test in taken),
        losses=sum(test.verdicts[rule.name].losses for test in taken),
        short=sum(size < rule.size for size in sizes),
    )
