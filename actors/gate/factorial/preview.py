"""What a schedule costs and can see, before its first draw. Pure.

The model: of an edit's pairs a share ``discordance`` has one arm right and one wrong, whatever
the reason; an edit with a mean gain g turns the balance of won and lost among them so that
W - L is g per pair on average.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import msgspec

from actors.gate.factorial.binomial import tails
from actors.gate.factorial.schedule import Schedule

__all__ = [
    "DISCORDANCE",
    "ClassPreview",
    "Preview",
    "adoption_probability",
    "nominal_level",
    "preview",
    "preview_lines",
    "resolvable_gain",
]

DISCORDANCE = 0.3
"""Of two draws of a unit; .26 in the study's population, more with the other edits flipping."""

_TYPICAL_SHARE = Fraction(1, 10)  # of the edits is adopted in the study's main world
_STEPS = 10
_SPREAD = 6.0  # standard deviations of D beyond which nothing is counted


class ClassPreview(msgspec.Struct, frozen=True, kw_only=True):
    """One class. pairs: of each phase. gain_first, gain_last: the smallest mean gain, as a share
    of units, that is adopted with probability .8 for an edit of the first and of the last epoch;
    None: none is."""

    task_type: str
    n_design: int
    n_gate: int
    pairs: tuple[int, ...]
    gain_first: float | None
    gain_last: float | None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """draws: of a unit, at most. rollouts: questions answered in them. level: the p-value that an
    edit would have to reach if a tenth of all were adopted."""

    classes: tuple[ClassPreview, ...]
    n_pairs: int
    draws: int
    rollouts: int
    level: float


def nominal_level(q: Fraction, cap: Fraction) -> Fraction:
    """The step-up's cut where every p-value is attainable and a tenth of the edits is adopted."""
    return min(cap, q * _TYPICAL_SHARE * (1 - cap))


def preview(
    schedule: Schedule, q: Fraction, cap: Fraction, discordance: float = DISCORDANCE
) -> Preview:
    """Every class of the schedule, and the totals."""
    level = nominal_level(q, cap)
    classes = []
    for own in schedule.classes:
        last = own.pairs[schedule.n_epochs - 1 :]
        classes.append(
            ClassPreview(
                task_type=own.task_type,
                n_design=len(own.design),
                n_gate=len(own.gate),
                pairs=own.pairs,
                gain_first=resolvable_gain(sum(own.pairs), level, 0.8, discordance),
                gain_last=resolvable_gain(sum(last), level, 0.8, discordance),
            )
        )
    return Preview(
        classes=tuple(classes),
        n_pairs=schedule.n_pairs,
        draws=schedule.draws,
        rollouts=schedule.rollouts,
        level=float(level),
    )


def preview_lines(shown: Preview) -> list[str]:
    """The preview for people, a line each. Calls hang on more than a schedule: none is told."""
    lines = [
        f"{shown.n_pairs} pairs, at most {shown.draws} draws of a unit, {shown.rollouts} rollouts; "
        "all fixed now, nothing is adopted before the last pair"
    ]
    for own in shown.classes:
        *epochs, certify = own.pairs
        per_epoch = " + ".join(str(n) for n in epochs)
        lines.append(
            f"{own.task_type}: {own.n_design} units to learn from, {own.n_gate} to test on, "
            f"{per_epoch} pairs + {certify} to certify; resolves {_points(own.gain_first)} in the "
            f"first epoch, {_points(own.gain_last)} in the last"
        )
    lines.append(
        "resolves: the mean gain adopted with probability .8 if a tenth of all edits is adopted "
        f"(p <= {shown.level:.3g}); an edit of an exclusive group sees a share of these pairs"
    )
    return lines


def _points(gain: float | None) -> str:
    return "no gain" if gain is None else f"+{100 * gain:.0f} points"


@lru_cache(maxsize=1024)
def resolvable_gain(
    n_pairs: int, level: Fraction, power: float, discordance: float = DISCORDANCE
) -> float | None:
    """The smallest mean gain in (0, 1] that reaches the level with this probability, to .001."""
    if adoption_probability(n_pairs, 1.0, level, discordance) < power:
        return None
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        enough = adoption_probability(n_pairs, middle, level, discordance) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def adoption_probability(n_pairs: int, gain: float, level: Fraction, discordance: float) -> float:
    """P(p <= level) with D ~ Bin(n_pairs, share) and W ~ Bin(D, (1 + gain / share) / 2).

    gain: in [0, 1]. share: the discordance, or the gain where that is more.
    """
    share = max(gain, discordance)
    won = (1.0 + gain / share) / 2.0 if share else 0.5
    spread = _SPREAD * math.sqrt(n_pairs * share * (1.0 - share))
    first = max(0, math.floor(n_pairs * share - spread))
    last = min(n_pairs, math.ceil(n_pairs * share + spread))
    total = 0.0
    for n in range(first, last + 1):
        critical = _critical(n, level)
        if critical is None:
            continue
        reached = sum(_mass(n, w, won) for w in range(critical, n + 1))
        total += _mass(n_pairs, n, share) * reached
    return min(1.0, total)


@lru_cache(maxsize=4096)
def _critical(n: int, level: Fraction) -> int | None:
    """The fewest wins of n with P(Bin(n, 1/2) >= wins) <= level."""
    allowed = int(level * (1 << n))
    few = next((losses for losses, value in enumerate(tails(n)) if value > allowed), n + 1)
    return n - few + 1 if few else None


def _mass(n: int, k: int, p: float) -> float:
    """P(Bin(n, p) = k)."""
    if p <= 0.0 or p >= 1.0:
        return float(k == (n if p >= 1.0 else 0))
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))
