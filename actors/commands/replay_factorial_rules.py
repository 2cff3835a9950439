"""Deciding a factorial run again, by another rule, on the pairs that it drew. Pure.

The run's pairs were drawn with the edits switched off that the run had dropped. A rule that drops
more forgets coins; one that drops less lacks the pairs that were never drawn with the edit on.
What it would have said is then bounded from both sides, as if all these pairs had been won and as
if all had been lost, and is ``unknown`` where the two differ: never guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal, get_args

import msgspec

from actors.gate.factorial.binomial import tail
from actors.gate.factorial.coins import Coin, PairCoins
from actors.gate.factorial.course import LoggedPair
from actors.gate.factorial.drop import drop_harmful
from actors.gate.factorial.states import FactorialEdit, counted
from actors.gate.factorial.stepup import evidence_of, one_per_group, step_up
from actors.gate.factorial.tally import tally

__all__ = [
    "DEFAULT_RULES",
    "FactorialRule",
    "FactorialVerdict",
    "StoredClass",
    "decide_again",
    "parse_factorial_rule",
]

DEFAULT_RULES = (
    "always",
    "strict",
    "one-sided:0.1",
    "one-sided:0.05",
    "factorial:q=0.2",
    "factorial:q=0.1",
    "factorial:cap=0.05",
    "factorial:drop_harm=0.1",
    "factorial",
)
"""What ``all`` stands for, from the most credulous on."""

Kind = Literal["always", "strict", "one-sided", "factorial"]
Said = Literal["adopt", "reject", "dropped", "unknown"]

_KNOBS = ("q", "cap", "drop_harm")
_NUMBER = re.compile(r"\d{1,6}/\d{1,6}|\d{0,6}\.\d{1,9}")


class FactorialRule(msgspec.Struct, frozen=True, kw_only=True):
    """name: as it was asked for. level: of ``one-sided``; the others of ``factorial``.

    The simple rules judge the edits as the run's own drop_harm left them.
    """

    name: str
    kind: Kind
    q: Fraction
    cap: Fraction
    drop_harm: Fraction
    level: Fraction = Fraction(1)


class StoredClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class as it was logged, or the prompts. edits: as they were born, in canonical order."""

    edits: tuple[FactorialEdit, ...]
    log: tuple[LoggedPair, ...]


class FactorialVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule makes of an edit. lacking: pairs that it would have needed.

    wins, losses: of the pairs in which the edit was on under the rule and in the run. p: None
    where pairs lack.
    """

    said: Said
    wins: int
    losses: int
    lacking: int
    p: float | None


def parse_factorial_rule(text: str, own: FactorialRule) -> FactorialRule:
    """A rule by its name. own: what the run was decided by.

    Raises ValueError naming the rules that there are, or the number that cannot be used.
    """
    kind, colon, rest = text.partition(":")
    for plain in get_args(Kind):
        if text == plain != "one-sided":
            return msgspec.structs.replace(own, name=text, kind=plain)
    if kind == "one-sided" and colon:
        level = _share(text, "its level", rest)
        return msgspec.structs.replace(own, name=text, kind="one-sided", level=level)
    if kind == "factorial" and colon:
        knobs = {}
        for part in rest.split(","):
            key, _, value = part.partition("=")
            if key not in _KNOBS or key in knobs:
                raise ValueError(f"--rule {text}: {part!r} is none of q=, cap=, drop_harm=, once")
            knobs[key] = _share(text, key, value)
        return msgspec.structs.replace(own, name=text, kind="factorial", **knobs)
    raise ValueError(
        f"--rule {text}: is none of always, strict, one-sided:A, factorial, "
        "factorial:q=...,cap=...,drop_harm=..., all, which are for a run with gate.design: "
        "factorial"
    )


def decide_again(
    rule: FactorialRule, classes: Sequence[StoredClass], n_epochs: int, *, ok: bool
) -> dict[str, FactorialVerdict]:
    """By edit. ok: the sentinels look like coins; else ``factorial`` adopts nothing."""
    worst, lacking = _ended(classes, rule.drop_harm, n_epochs, won=False)
    best, _ = _ended(classes, rule.drop_harm, n_epochs, won=True)
    void = rule.kind == "factorial" and not ok
    surely, perhaps = (set() if void else _adopted(rule, edits) for edits in (worst, best))
    found = {}
    for low, high in zip(counted(worst), counted(best), strict=True):
        taken = (low.edit_id in surely, low.edit_id in perhaps)
        said: Said = "adopt" if all(taken) else "unknown" if any(taken) else "reject"
        if said == "reject" and low.state == high.state == "dropped":
            said = "dropped"
        missing = lacking[low.edit_id]
        found[low.edit_id] = FactorialVerdict(
            said=said,
            wins=low.wins,
            losses=high.losses,
            lacking=missing,
            p=None if missing else float(_p(low)),
        )
    return found


def _ended(
    classes: Iterable[StoredClass], drop_harm: Fraction, n_epochs: int, *, won: bool
) -> tuple[list[FactorialEdit], Counter[str]]:
    """All edits after the last phase, and the pairs that lack. won: what those are taken for."""
    ended: list[FactorialEdit] = []
    lacking: Counter[str] = Counter()
    for own in classes:
        now = own.edits
        for phase in range(1, n_epochs + 2):
            off = {edit.edit_id for edit in now if edit.state == "dropped"}
            pairs = [pair for pair in own.log if pair.coins.pair.phase == phase]
            lacking.update(
                coin.edit_id
                for pair in pairs
                for coin in pair.coins.coins
                if coin.virtual and coin.edit_id not in off and pair.outcome
            )
            now = tally(now, [(_as_if(pair, off, won=won), pair.outcome) for pair in pairs])
            if phase <= n_epochs:
                now = drop_harmful(now, drop_harm)
        ended += now
    return ended, lacking


def _as_if(pair: LoggedPair, off: set[str], *, won: bool) -> PairCoins:
    """The pair's coins with these edits dropped, and no others."""
    coins = []
    for coin in pair.coins.coins:
        if coin.edit_id in off:
            coins.append(Coin(coin.edit_id, coin.sign, virtual=True))
        elif coin.virtual and pair.outcome:
            ahead = pair.outcome if won else -pair.outcome
            coins.append(Coin(coin.edit_id, 1 if ahead > 0 else -1))
        else:
            coins.append(Coin(coin.edit_id, coin.sign))
    return PairCoins(pair.coins.pair, tuple(coins))


def _adopted(rule: FactorialRule, edits: Sequence[FactorialEdit]) -> set[str]:
    evidence = evidence_of(edits)
    if rule.kind == "factorial":
        return set(step_up(evidence, rule.q, rule.cap).adopted)
    own = counted(edits)
    passed = [(_p(edit), place) for place, edit in enumerate(own) if _passes(rule, edit)]
    return set(one_per_group(evidence, passed))


def _passes(rule: FactorialRule, edit: FactorialEdit) -> bool:
    if rule.kind == "always":
        return True
    if edit.state == "dropped" or edit.wins <= edit.losses:
        return False
    return rule.kind == "strict" or _p(edit) <= rule.level


def _p(edit: FactorialEdit) -> Fraction:
    """P(Bin(D, 1/2) >= W); 1 for a dropped edit."""
    return Fraction(1) if edit.state == "dropped" else tail(edit.discordant, edit.wins)


def _share(text: str, name: str, value: str) -> Fraction:
    if _NUMBER.fullmatch(value) and not value.endswith("/0"):
        number = Fraction(value)
        if 0 < number < 1:
            return number
    raise ValueError(
        f"--rule {text}: {name} must be a number above 0 and below 1, such as 0.2 or 1/5"
    )
