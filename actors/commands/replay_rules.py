"""Deciding a stored test again, by another rule, on the answers that were given. Pure.

The gate stops as soon as it may, so that a rule which looks at more units may lack answers. What
it would have said is then bounded from both sides: if all that was not asked had been won, and if
all of it had been lost. Where both lead to the same verdict it is known; else it is ``unknown``,
and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec

from actors.gate.decide import Answers, LadderUnit, Rules, Standing, decide
from actors.gate.eprocess import UnitResult, exact_alpha, judge, losses, unit_result, wins
from actors.gate.levels import alpha_of, stages_of
from protocol.gate import Verdict
from protocol.rows import DecisionRow
from protocol.settings import GateSettings

__all__ = [
    "DEFAULT_RULES",
    "Asked",
    "Redecided",
    "ReplayRule",
    "StoredTest",
    "parse_rule",
    "questions_of",
    "redecide",
]

DEFAULT_RULES = (
    "always",
    "minibatch:3",
    "minibatch:8",
    "strict",
    "mcnemar",
    "gate:growth",
    "gate:audit",
    "gate:balanced",
    "gate",
)
"""What ``all`` stands for, from the most credulous on."""

_MINIBATCH = re.compile(r"minibatch:([1-9][0-9]{0,5})")

Profile = Literal["balanced", "growth", "audit"]
Kind = Literal["always", "strict", "minibatch", "mcnemar", "gate"]


class ReplayRule(msgspec.Struct, frozen=True, kw_only=True):
    """name: as it was asked for. size: of a minibatch. settings: the gate's, with the profile."""

    name: str
    kind: Kind
    settings: GateSettings
    size: int = 0


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a test: the ladder in the order it was asked, and the blocks answered."""

    ladder: tuple[LadderUnit, ...]
    blocks: tuple[tuple[Answers, ...], ...]

    @property
    def answers(self) -> tuple[Answers, ...]:
        """Of the units that were asked, in order."""
        return tuple(unit for block in self.blocks for unit in block)


class StoredTest(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with what it was made of. stages: the second only where it ran."""

    row: DecisionRow
    stages: tuple[Asked, ...]


def questions_of(test: StoredTest) -> int:
    """How many questions the ladder has."""
    return sum(len(unit.draws) for unit in test.stages[0].ladder)


class Redecided(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule makes of a stored test.

    verdict: the gate's, or ``unknown``. units: whose answers the rule looked at; lacking: units
    that it would have looked at and nobody asked (0 unless unknown).
    wins, losses: of the units looked at, against the baseline's first draw (the gate's own rule:
    all its draws).
    """

    verdict: Verdict | Literal["unknown"]
    reason: str
    units: int
    lacking: int
    wins: int
    losses: int


def parse_rule(text: str, settings: GateSettings) -> ReplayRule:
    """A rule by its name. settings: the run's.

    Raises ValueError naming the rules that there are.
    """
    for plain in get_args(Kind):
        if text == plain != "minibatch":
            return ReplayRule(name=text, kind=plain, settings=settings)
    if found := _MINIBATCH.fullmatch(text):
        return ReplayRule(name=text, kind="minibatch", settings=settings, size=int(found[1]))
    kind, _, profile = text.partition(":")
    if kind == "gate" and profile in ("balanced", "growth", "audit"):
        chosen = msgspec.structs.replace(settings, profile=profile)
        return ReplayRule(name=text, kind="gate", settings=chosen)
    raise ValueError(
        f"--rule {text}: is none of always, strict, minibatch:N, mcnemar, gate, gate:balanced, "
        "gate:growth, gate:audit, all"
    )


def redecide(rule: ReplayRule, test: StoredTest) -> Redecided:
    """The verdict of a rule on the answers that the run has stored."""
    if rule.kind == "gate":
        return _by_gate(rule.settings, test)
    first = test.stages[0]
    if rule.kind == "always":
        return Redecided(verdict="accept", reason="", units=0, lacking=0, wins=0, losses=0)
    if rule.kind == "mcnemar":
        return _by_mcnemar(alpha_of(rule.settings, len(first.ladder)), first)
    return _by_score(first, rule.size if rule.kind == "minibatch" else None)


# -- the gate ---------------------------------------------------------------------------


def _by_gate(settings: GateSettings, test: StoredTest) -> Redecided:
    """Stage after stage, as the gate's actor does."""
    n_stages = stages_of(settings)
    standing: Standing | None = None
    for number in range(n_stages):
        if number == len(test.stages):
            assert standing is not None, "a second stage follows a first"
            n = len(test.stages[0].ladder)
            return _of(standing, "unknown", "the second stage was never run", lacking=n)
        asked = test.stages[number]
        standing = _stage(settings, asked)
        if standing is None:
            seen = len(asked.answers)
            results = _results(asked)
            return Redecided(
                verdict="unknown",
                reason="would have gone on",
                units=seen,
                lacking=len(asked.ladder) - seen,
                wins=wins(results),
                losses=losses(results),
            )
        if standing.verdict != "accept":
            confirming = number > 0 and standing.verdict == "untestable"
            return _of(standing, "reject" if confirming else standing.verdict, standing.reason)
    assert standing is not None, "there is at least one stage"
    return _of(standing, "accept", standing.reason)


def _stage(settings: GateSettings, asked: Asked) -> Standing | None:
    """Where the stage ends on its blocks; None: it would have asked for more."""
    rules = Rules(
        alpha=alpha_of(settings, len(asked.ladder)),
        max_missing_share=settings.max_missing_share,
        futility_power=settings.futility_power,
        harm_e=settings.harm_e,
    )
    for n_blocks in range(len(asked.blocks) + 1):
        standing = decide(asked.ladder, asked.blocks[:n_blocks], rules)
        if standing is not None:
            return standing
    return None


def _of(
    standing: Standing, verdict: Verdict | Literal["unknown"], reason: str, lacking: int = 0
) -> Redecided:
    return Redecided(
        verdict=verdict,
        reason=reason,
        units=standing.evaluated + standing.missing,
        lacking=lacking,
        wins=standing.wins,
        losses=standing.losses,
    )


def _results(asked: Asked, fill: bool | None = None, draws: int | None = None) -> list[UnitResult]:
    """The units' results over their valid pairs.

    fill: what every question that was not asked is taken for; None: those units are left out.
    draws: only the first so many of the baseline's.
    """
    results = []
    for unit, answers in _whole(asked, fill):
        pairs = [
            (drawn[:draws], answer)
            for drawn, answer in zip(unit.draws, answers, strict=True)
            if drawn and answer is not None
        ]
        if pairs:
            results.append(unit_result([d for d, _ in pairs], [bool(a) for _, a in pairs]))
    return results


def _whole(asked: Asked, fill: bool | None) -> Iterator[tuple[LadderUnit, Answers]]:
    given = asked.answers
    yield from zip(asked.ladder, given, strict=False)
    if fill is not None:
        for unit in asked.ladder[len(given) :]:
            yield unit, (fill,) * len(unit.draws)


# -- other rules ------------------------------------------------------------------------


def _by_mcnemar(alpha: float, asked: Asked) -> Redecided:
    """One exact one-sided McNemar test over all units, at the class's level."""
    accepts = [
        judge([_results(asked, fill, draws=1)], exact_alpha(alpha), ended=True).accepts[-1]
        for fill in (False, True)
    ]
    verdict = _bounded(accepts)
    if verdict == "reject" and not asked.answers:
        verdict = "untestable"
    seen = _results(asked, draws=1)
    return _looked(asked, verdict, len(asked.ladder), wins(seen), losses(seen))


def _by_score(asked: Asked, size: int | None) -> Redecided:
    """More right answers than the baseline's first draw, of the first ``size`` questions or all.

    A minibatch without a mistake of the baseline is passed over, as those who work so do.
    """
    pairs = list(_pairs(asked))[:size]
    if size is not None and all(before for _, before, _ in pairs):
        return _looked(asked, "reject", 0, 0, 0)
    known = [(before, after) for _, before, after in pairs if after is not None]
    open_ = [before for _, before, after in pairs if after is None]
    ahead = sum(after - before for before, after in known)
    accepts = [ahead - sum(open_) > 0, ahead + len(open_) - sum(open_) > 0]
    wanted = 1 + max((unit for unit, _, _ in pairs), default=-1)
    won = sum(after and not before for before, after in known)
    lost = sum(before and not after for before, after in known)
    return _looked(asked, _bounded(accepts), wanted, won, lost)


def _pairs(asked: Asked) -> Iterator[tuple[int, bool, bool | None]]:
    """Per question in the order asked: its unit's place, the baseline's answer, the candidate's.

    The candidate's is None where nobody asked; pairs that infrastructure lost are left out.
    """
    given = asked.answers
    for place, unit in enumerate(asked.ladder):
        for number, drawn in enumerate(unit.draws):
            if not drawn:
                continue
            answer = given[place][number] if place < len(given) else None
            if answer is not None or place >= len(given):
                yield place, drawn[0], answer


def _bounded(accepts: Sequence[bool]) -> Verdict | Literal["unknown"]:
    """accepts: in the worst case, in the best."""
    worst, best = accepts
    if worst:
        return "accept"
    return "unknown" if best else "reject"


def _looked(
    asked: Asked, verdict: Verdict | Literal["unknown"], wanted: int, won: int, lost: int
) -> Redecided:
    """wanted: units that the rule looks at, from the first."""
    seen = min(wanted, len(asked.answers))
    return Redecided(
        verdict=verdict,
        reason="not all were asked" if verdict == "unknown" else "",
        units=seen,
        lacking=wanted - seen if verdict == "unknown" else 0,
        wins=won,
        losses=lost,
    )
