"""The decision, as a pure function of the snapshot and what the candidate has shown.

``decide`` is called before the first block and after every block, always with everything seen
so far; it says accept, reject, undecided, untestable, or go on. It must never draw a random
number that reaches an accept, look at a clock, or remember anything between calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import msgspec

from actors.gate.eprocess import (
    Judged,
    UnitResult,
    binomial_tail,
    core,
    exact_alpha,
    judge,
    losses,
    ties,
    unit_result,
    wins,
)
from actors.gate.futility import LOSS_RATE, WIN_RATE, Chance, can_accept, chances, conditional_power
from actors.gate.looks import accept_looks, block_ends
from actors.gate.mixture import harm_e, lower_bound
from protocol.gate import Look, Verdict

__all__ = ["Answers", "LadderUnit", "Rules", "Standing", "decide", "look_of", "undecided"]

SOLID_EMA = 0.9
SOLID_TAIL = Fraction(1, 20)
MIN_EVALUATED = 8

Answers = tuple[bool | None, ...]
"""The candidate on one unit, one entry per question; None is missing."""


class LadderUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of the ladder with its baseline.

    draws: [question][draw], oldest first; a question without any is missing in the baseline.
    ema: the unit's difficulty from earlier epochs; None before it was ever seen.
    """

    unit_id: str
    draws: tuple[tuple[bool, ...], ...]
    ema: float | None = None


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a decision (GATE.md).

    alpha: the error level. max_missing_share: of question pairs; above it the worst case must
    accept too. futility_power: give up below it; 0 turns the rule off. harm_e: give up at it.
    bound_alpha: 1 - the level of the reported bound; None: alpha.
    """

    alpha: float
    max_missing_share: float
    futility_power: float
    harm_e: float
    bound_alpha: float | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a test ended.

    reason: ``core``, ``endgame``, ``futile_exact``, ``futile_power``, ``harm``, ``guardrail``,
        ``missing``, ``unreadable`` or ``end``.
    looks: the counts after every block. e_value: the core's value, what is shown and combined.
    p_gate: of the looks so far. lower_bound: of an accept only.
    """

    verdict: Verdict
    reason: str
    looks: tuple[Look, ...]
    evaluated: int
    wins: int
    losses: int
    ties: int
    missing: int
    e_value: float
    p_gate: float
    lower_bound: float | None


class _View(msgspec.Struct, frozen=True, kw_only=True):
    """The ladder cut into groups between looks; a result None is a unit without a valid pair."""

    ladder: tuple[LadderUnit, ...]
    answers: tuple[Answers, ...]
    ends: tuple[int, ...]
    results: tuple[UnitResult | None, ...]

    def groups(self, results: Sequence[UnitResult | None]) -> list[list[UnitResult]]:
        """Per look: the units seen that have a result."""
        starts = (0, *self.ends[:-1])
        return [
            [r for r in results[start:end] if r is not None]
            for start, end in zip(starts, self.ends, strict=True)
        ]

    def ahead(self) -> list[list[Chance]]:
        """Per look: what the units to come may still be."""
        return self._chances(range(len(self.answers), len(self.ladder)), {})

    def refilled(self) -> tuple[list[list[UnitResult]], list[list[Chance]]]:
        """The state as if everything missing were still to come; a lost baseline was wrong."""
        k = max((len(d) for unit in self.ladder for d in unit.draws if d), default=1)
        never_right = (False,) * k
        lacking = {
            i
            for i, unit in enumerate(self.ladder)
            if not all(unit.draws) or (i < len(self.answers) and None in self.answers[i])
        }
        kept = [None if i in lacking else r for i, r in enumerate(self.results)]
        drawn = {i: tuple(d or never_right for d in self.ladder[i].draws) for i in lacking}
        wanted = sorted(lacking | set(range(len(self.answers), len(self.ladder))))
        return self.groups(kept), self._chances(wanted, drawn)

    def _chances(
        self, wanted: Sequence[int], drawn: Mapping[int, tuple[tuple[bool, ...], ...]]
    ) -> list[list[Chance]]:
        ahead: list[list[Chance]] = [[] for _ in self.ends]
        for i in wanted:
            draws = tuple(d for d in drawn.get(i, self.ladder[i].draws) if d)
            if draws:
                group = bisect_right(self.ends, i)
                ahead[group].append(chances(draws, WIN_RATE, LOSS_RATE))
        return ahead


def decide(
    ladder: Sequence[LadderUnit], blocks: Sequence[Sequence[Answers]], rules: Rules
) -> Standing | None:
    """Judge the candidate on the blocks that it has answered so far; None: go on.

    ladder: all units, in their blind order. blocks: the candidate's answers for the first
    blocks of ``block_ends(len(ladder))``, per unit, per question.

    Raises ValueError if the blocks do not fit the ladder.
    """
    view = _view(ladder, blocks)
    if not blocks:
        if ladder and can_accept(view.groups(()), view.ahead(), rules.alpha):
            return None
        return _lost(view, rules, "futile_exact")
    at_the_end = len(view.answers) == len(view.ladder)
    if _accepts(view, view.results, rules):
        held = _held_back(view, rules)
        if held is None:
            return _standing(view, rules, "accept", "endgame" if at_the_end else "core")
        verdict, reason = held
        if verdict == "reject" or at_the_end:
            return _standing(view, rules, verdict, reason)
    if harm_e(r for r in view.results if r is not None) >= rules.harm_e:
        return _standing(view, rules, "reject", "harm")
    if at_the_end:
        return _lost(view, rules, "end")
    groups, ahead = view.groups(view.results), view.ahead()
    passed = sum(end <= len(view.answers) for end in view.ends)
    if not can_accept(groups, ahead, rules.alpha, passed=passed):
        return _lost(view, rules, "futile_exact")
    if rules.futility_power > 0 and (
        conditional_power(groups, ahead, rules.alpha, passed=passed) < rules.futility_power
    ):
        return _lost(view, rules, "futile_power")
    return None


def undecided(
    ladder: Sequence[LadderUnit], blocks: Sequence[Sequence[Answers]], rules: Rules, reason: str
) -> Standing:
    """A test that is given up for what is no sign of the candidate; arguments as of ``decide``."""
    return _standing(_view(ladder, blocks), rules, "undecided", reason)


def look_of(ladder: Sequence[LadderUnit], blocks: Sequence[Sequence[Answers]]) -> Look:
    """The counts so far, for whoever watches; arguments as of ``decide``."""
    return _look(_view(ladder, blocks).results)


def _view(ladder: Sequence[LadderUnit], blocks: Sequence[Sequence[Answers]]) -> _View:
    ends = block_ends(len(ladder))
    answers = tuple(unit for block in blocks for unit in block)
    if len(blocks) > len(ends) or len(answers) != (ends[len(blocks) - 1] if blocks else 0):
        raise ValueError(f"{len(answers)} units in {len(blocks)} blocks do not fit {ends}")
    return _View(
        ladder=tuple(ladder),
        answers=answers,
        ends=accept_looks(len(ladder)),
        results=tuple(_pair(unit, given) for unit, given in zip(ladder, answers, strict=False)),
    )


def _pair(unit: LadderUnit, answers: Answers, *, worst: bool = False) -> UnitResult | None:
    """The unit over its valid pairs; ``worst`` counts what the candidate lacks as wrong."""
    if len(answers) != len(unit.draws):
        raise ValueError(f"{unit.unit_id}: {len(answers)} answers to {len(unit.draws)} questions")
    return _paired(unit.draws, answers, worst)


@lru_cache(maxsize=8192)
def _paired(
    draws: tuple[tuple[bool, ...], ...], answers: Answers, worst: bool
) -> UnitResult | None:
    pairs = [
        (drawn, bool(answer))
        for drawn, answer in zip(draws, answers, strict=True)
        if drawn and (worst or answer is not None)
    ]
    if not pairs:
        return None
    return unit_result([drawn for drawn, _ in pairs], [answer for _, answer in pairs])


def _judged(view: _View, results: Sequence[UnitResult | None], rules: Rules) -> Judged:
    """The looks reached so far."""
    seen = len(view.answers)
    reached = sum(end <= seen for end in view.ends)
    ended = bool(view.ladder) and seen == len(view.ladder)
    return judge(view.groups(results)[:reached], exact_alpha(rules.alpha), ended=ended)


def _accepts(view: _View, results: Sequence[UnitResult | None], rules: Rules) -> bool:
    """Whether the units seen end at a look and this look accepts, whatever earlier ones said."""
    return len(view.answers) in view.ends and _judged(view, results, rules).accepts[-1]


def _held_back(view: _View, rules: Rules) -> tuple[Verdict, str] | None:
    """A guardrail against an accept: what it would have to become; None: none holds."""
    results = [r for r in view.results if r is not None]
    if _missing_share(view) > rules.max_missing_share:
        worst = [
            _pair(unit, given, worst=True)
            for unit, given in zip(view.ladder, view.answers, strict=False)
        ]
        if not _accepts(view, worst, rules):
            return "undecided", "missing"
    if len(results) < min(MIN_EVALUATED, len(view.ladder)):
        return "undecided", "guardrail"
    if _breaks_records(view):
        return "reject", "guardrail"
    return None


def _missing_share(view: _View) -> float:
    """Of the question pairs of the units seen, those that lack an arm; before any: baselines."""
    if view.answers:
        whole = [
            bool(draws) and answer is not None
            for unit, given in zip(view.ladder, view.answers, strict=False)
            for draws, answer in zip(unit.draws, given, strict=True)
        ]
    else:
        whole = [bool(draws) for unit in view.ladder for draws in unit.draws]
    return whole.count(False) / len(whole) if whole else 0.0


def _breaks_records(view: _View) -> bool:
    """More losses among units with a solid record than the record explains (study, 1.5).

    Solid: right in all k draws, or EMA >= .9. Its record is the EMA, or (k + 1) / (k + 2) for k
    draws, all right: no finite record says "never wrong", and a null candidate flips one right
    unit in five.
    """
    records: list[Fraction] = []
    lost = 0
    for unit, result in zip(view.ladder, view.results, strict=False):
        if result is None:
            continue
        drawn = [draws for draws in unit.draws if draws]
        if unit.ema is not None and unit.ema >= SOLID_EMA:
            records.append(Fraction(unit.ema))
        elif all(all(draws) for draws in drawn):
            k = min(len(draws) for draws in drawn)
            records.append(Fraction(k + 1, k + 2))
        else:
            continue
        lost += result.sign < 0
    if not lost:
        return False
    flip = 1 - sum(records, Fraction(0)) / len(records)
    return binomial_tail(len(records), lost, flip.limit_denominator(10**9)) < SOLID_TAIL


def _lost(view: _View, rules: Rules, reason: str) -> Standing:
    """Not accepted, and nothing to come can change it: unless what is missing could."""
    if _missing_share(view) > rules.max_missing_share and can_accept(*view.refilled(), rules.alpha):
        return _standing(view, rules, "undecided", "missing")
    return _standing(view, rules, "reject" if view.answers else "untestable", reason)


def _standing(view: _View, rules: Rules, verdict: Verdict, reason: str) -> Standing:
    results = [r for r in view.results if r is not None]
    bound = None
    if verdict == "accept":
        bound = lower_bound([r.gain for r in results], rules.bound_alpha or rules.alpha)
    return Standing(
        verdict=verdict,
        reason=reason,
        looks=tuple(
            _look(view.results[:end])
            for end in block_ends(len(view.ladder))
            if end <= len(view.results)
        ),
        evaluated=len(results),
        wins=wins(results),
        losses=losses(results),
        ties=ties(results),
        missing=len(view.results) - len(results),
        e_value=float(core(results)),
        p_gate=float(_judged(view, view.results, rules).p),
        lower_bound=bound,
    )


def _look(seen: Sequence[UnitResult | None]) -> Look:
    results = [r for r in seen if r is not None]
    return Look(
        units=len(seen),
        wins=wins(results),
        losses=losses(results),
        ties=ties(results),
        missing=len(seen) - len(results),
        e=float(core(results)),
    )
