"""Which edits of a run are adopted: a discrete step-up with false discovery rate at most q. Pure.

The heterogeneous step-up for discrete tests (HSU, Doehler, Durand and Roquain 2018), after
Benjamini and Hochberg. A p-value from D fair coins takes few values; an edit with D = 3 can never
have p <= .1 and adds nothing to the sums at it. The sums below charge every edit with what its own
support can attain. Conditions and proof: the coin lemma (T6) and T7 of the study; the bound is on
the edits that change nothing, among those that the run adopts.

Everything is exact: all p-values are dyadic, held as integers over one power of two.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from actors.gate.factorial.binomial import tails
from actors.gate.factorial.states import FactorialEdit, counted

__all__ = ["CAP", "Evidence", "StepUp", "evidence_of", "one_per_group", "step_up"]

CAP = Fraction(1, 10)
"""The largest p-value that may ever be adopted, by default."""

_GUARD_BITS = 128


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one edit at the end; fields as of ``FactorialEdit``."""

    edit_id: str
    wins: int
    losses: int
    dropped: bool = False
    seen: int = 0
    group: str | None = None

    def __post_init__(self) -> None:
        if min(self.wins, self.losses, self.seen) < 0:
            raise ValueError(f"{self.edit_id}: counts cannot be negative")

    @property
    def discordant(self) -> int:
        """D: the coins that its p-value could have been made of."""
        return self.seen if self.dropped else self.wins + self.losses


class StepUp(msgspec.Struct, frozen=True, kw_only=True):
    """The decision.

    adopted: ids, in the order given. p: one per edit, in the order given.
    tau: no larger p-value can be adopted. cut: the largest that was, before groups; None: none.
    passed: how many edits have p <= cut; above ``adopted`` where a group had several.
    """

    adopted: tuple[str, ...]
    p: tuple[Fraction, ...]
    tau: Fraction
    cut: Fraction | None
    passed: int


def evidence_of(edits: Iterable[FactorialEdit]) -> tuple[Evidence, ...]:
    """The M edits of a run as the decision wants them; sentinels are left out."""
    return tuple(
        Evidence(
            edit_id=edit.edit_id,
            wins=edit.wins,
            losses=edit.losses,
            dropped=edit.state == "dropped",
            seen=edit.seen,
            group=edit.group,
        )
        for edit in counted(edits)
    )


def step_up(edits: Sequence[Evidence], q: Fraction, cap: Fraction = CAP) -> StepUp:
    """Decide over all edits that the run has ever proposed, rejected and dropped ones included.

    q: bound of the false discovery rate, in (0, 1). cap: on tau, in (0, 1).

    Raises ValueError for q or cap outside, or an id that comes twice.
    """
    for name, value in (("q", q), ("cap", cap)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    if len({edit.edit_id for edit in edits}) < len(edits):
        raise ValueError("an edit id comes twice")
    family = _Family(edits)
    tau = family.tau(q, cap)
    cut = family.cut(q, tau) if tau else None
    passed = [
        (p, place)
        for place, p in enumerate(family.p)
        if cut is not None and p <= cut and not edits[place].dropped
    ]
    return StepUp(
        adopted=one_per_group(edits, passed),
        p=tuple(family.exact(p) for p in family.p),
        tau=family.exact(tau),
        cut=None if cut is None else family.exact(cut),
        passed=len(passed),
    )


def one_per_group(
    edits: Sequence[Evidence], passed: Iterable[tuple[int | Fraction, int]]
) -> tuple[str, ...]:
    """Ids in the order given; of a group the smallest p, of equal ones the first.

    passed: p, on any scale, and place of the edits that may be adopted.
    """
    taken: set[str] = set()
    places = []
    for _, place in sorted(passed):
        group = edits[place].group
        if group is not None and group in taken:
            continue
        if group is not None:
            taken.add(group)
        places.append(place)
    return tuple(edits[place].edit_id for place in sorted(places))


class _Family:
    """All p-values and supports S(D), as integers over 2**bits, bits the largest D."""

    def __init__(self, edits: Sequence[Evidence]) -> None:
        self._n = len(edits)
        self._sizes = Counter(edit.discordant for edit in edits)
        self._bits = max(self._sizes, default=0)
        self.p = [self._p(edit) for edit in edits]

    def exact(self, value: int) -> Fraction:
        """The p-value that the integer stands for."""
        return Fraction(value, 1 << self._bits)

    def tau(self, q: Fraction, cap: Fraction) -> int:
        """The largest attainable t <= cap with sum_j F_j(t) / (1 - F_j(t)) <= q M; 0 if none."""
        highest = int(cap * (1 << self._bits))
        attainable: set[int] = set()
        for n in self._sizes:
            shift = self._bits - n
            own = tails(n)
            attainable.update(v << shift for v in own[: bisect_right(own, highest >> shift)])
        values = sorted(attainable)
        # the sum grows with t: the first value that is too large ends it
        too_large = bisect_left(values, True, key=lambda t: not self._within(t, t, q * self._n))
        return values[too_large - 1] if too_large else 0

    def cut(self, q: Fraction, tau: int) -> int | None:
        """The largest p_(k) <= tau with sum_j F_j(p_(k)) / (1 - F_j(tau)) <= q k, if any."""
        ordered = sorted(p for p in self.p if p <= tau)
        for p in sorted(set(ordered), reverse=True):
            if self._within(p, tau, q * bisect_right(ordered, p)):
                return p
        return None

    def _p(self, edit: Evidence) -> int:
        """P(Bin(D, 1/2) >= W); 1 for a dropped edit and for one without a discordant pair."""
        if edit.dropped:
            return 1 << self._bits
        n = edit.discordant
        return tails(n)[edit.losses] << (self._bits - n)

    def _within(self, at: int, tau: int, bound: Fraction) -> bool:
        """sum_j F_j(at) / (1 - F_j(tau)) <= bound, over all edits.

        Decided on the sum's integer bounds, 128 bits below the point; as fractions only where
        these cannot tell (the exact sum has a denominator of thousands of bits).
        """
        terms = []
        for n, times in self._sizes.items():
            above = times * self._attained(n, at)
            if above:
                terms.append((above, (1 << n) - self._attained(n, tau)))
        low = sum((above << _GUARD_BITS) // below for above, below in terms)
        limit = bound * (1 << _GUARD_BITS)
        if low + len(terms) <= limit:
            return True
        if low > limit:
            return False
        return sum((Fraction(*term) for term in terms), Fraction(0)) <= bound

    def _attained(self, n: int, at: int) -> int:
        """F_j(at), over 2**n: the largest value of S(n) that is not above, else 0."""
        own = tails(n)
        place = bisect_right(own, at >> (self._bits - n))
        return own[place - 1] if place else 0
