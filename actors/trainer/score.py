"""Counting a pass, and how sure one may be of the count. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from protocol.rollout import Answered, Missed, soft_score

__all__ = ["McNemar", "Score", "mcnemar", "score", "wilson"]


class Score(msgspec.Struct, frozen=True):
    """A pass over a pool. Accuracy is right / planned; missing stands beside it.

    soft: mean proper score of the answered questions, 0 if there are none.
    """

    planned: int
    right: int
    missing: int
    soft: float

    @property
    def hard(self) -> float:
        """right / planned, in [0, 1]; 0 for an empty pass."""
        return self.right / self.planned if self.planned else 0.0

    @property
    def mixed(self) -> float:
        """0.5 hard + 0.5 soft (ALGORITHM.md section 2)."""
        return 0.5 * self.hard + 0.5 * self.soft

    @property
    def coverage(self) -> float:
        """The share of planned questions that were answered, 1 for an empty pass."""
        return 1.0 - self.missing / self.planned if self.planned else 1.0


def score(results: Sequence[Answered | Missed]) -> Score:
    """Count a pass; missing is never wrong."""
    answered = [result for result in results if isinstance(result, Answered)]
    softs = [soft_score(result.confidence, result.right) for result in answered]
    return Score(
        planned=len(results),
        right=sum(result.right for result in answered),
        missing=len(results) - len(answered),
        soft=math.fsum(softs) / len(softs) if softs else 0.0,
    )


def wilson(right: int, planned: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's interval of a proportion, 95 % by default; (0, 1) without data."""
    if planned == 0:
        return 0.0, 1.0
    share = right / planned
    centre = share + z * z / (2 * planned)
    spread = z * math.sqrt(share * (1 - share) / planned + z * z / (4 * planned * planned))
    scale = 1 + z * z / planned
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


class McNemar(msgspec.Struct, frozen=True):
    """The paired comparison of two passes over the same questions.

    wins: right only after; losses: right only before.
    p: exact one-sided P(Bin(wins + losses, 1/2) >= wins); 1 without a discordant pair.
    p_loss: the same for the losses: small if the later pass is worse.
    low, high: of the gain in accuracy, 95 % (Agresti and Min: half a pair added to each cell).
    """

    pairs: int
    wins: int
    losses: int
    p: float
    p_loss: float
    low: float
    high: float

    @property
    def e_value(self) -> float:
        """The gate's bet on these pairs: 1.5^wins 0.5^losses (GATE.md, the decision)."""
        return float(1.5**self.wins * 0.5**self.losses)


def mcnemar(before: Mapping[str, bool], after: Mapping[str, bool]) -> McNemar:
    """Compare by question id; a question missing on either side is no pair."""
    common = before.keys() & after.keys()
    wins = sum(after[key] and not before[key] for key in common)
    losses = sum(before[key] and not after[key] for key in common)
    low, high = _gain_interval(len(common), wins, losses)
    return McNemar(
        pairs=len(common),
        wins=wins,
        losses=losses,
        p=_tail(wins + losses, wins),
        p_loss=_tail(wins + losses, losses),
        low=low,
        high=high,
    )


def _tail(n: int, k: int) -> float:
    """P(Bin(n, 1/2) >= k), exact; 1 for n = 0."""
    return float(sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n)


def _gain_interval(
    pairs: int, wins: int, losses: int, z: float = 1.959963984540054
) -> tuple[float, float]:
    """Of a difference of paired shares; (-1, 1) without a pair."""
    if pairs == 0:
        return -1.0, 1.0
    n, won, lost = pairs + 2, wins + 0.5, losses + 0.5
    gain = (won - lost) / n
    spread = z * math.sqrt(max(0.0, (won + lost) - (won - lost) ** 2 / n)) / n
    return max(-1.0, gain - spread), min(1.0, gain + spread)
