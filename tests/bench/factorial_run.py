"""Endpoints that misbehave, and edits that know units by heart, under the factorial gate.

The run is the product's own (``actors.commands.simulated.factorial_run``); this only decides how
the arms of a pair are answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

import msgspec
import numpy as np

from actors.commands.simulated.factorial_run import QS, PhaseDraws, answer, sign
from actors.commands.simulated.factorial_run import simulate as run
from actors.commands.simulated.planted import Floats, Planted
from actors.commands.simulated.training import Training
from actors.gate.factorial.coins import Arm
from actors.gate.factorial.tally import Outcome

__all__ = ["BUDGET", "QS", "WORLDS", "Endpoint", "simulate"]

BUDGET = 3852
"""Draws of a unit in the study's main world."""

_LEARNT = 8  # the key of what the edits learn by heart
_BLOCK = 10  # pairs that a burst of failures hits together


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What else decides an answer.

    drift: logits added over the run, evenly with its pairs.
    arm: logits that arm a is better by, say because it is always drawn first.
    burst: chance that a block of pairs loses all its answers in arm a, and in arm b the same.
    lost: chance that a pair is void because of infrastructure, if arm b is wrong; none otherwise.
    memorised: logits that every edit adds on a unit or two that it has learnt by heart, of the
        class's design fold; leak: of its gate fold, what the folds are there to prevent.
    """

    drift: float = 0.0
    arm: float = 0.0
    burst: float = 0.0
    lost: float = 0.0
    memorised: float = 0.0
    leak: bool = False


WORLDS: Mapping[str, Endpoint] = {
    "plain": Endpoint(),
    "drift": Endpoint(drift=1.6, arm=0.4),
    "failures": Endpoint(burst=0.15, lost=0.3),
    "memorise": Endpoint(memorised=4.0),
}
"""A steady endpoint; one that drifts and prefers an arm; one with correlated failures that also
loses wrong answers; edits that know their evidence by heart."""


def simulate(
    planted: Planted,
    endpoint: Endpoint = WORLDS["plain"],
    *,
    qs: Sequence[Fraction] = QS,
    budget: int = BUDGET,
    alternatives: int = 1,
) -> list[Training]:
    """One run at an endpoint, as of the product's function."""
    answering = partial(_answers, endpoint)
    return run(planted, budget, qs=qs, answering=answering, alternatives=alternatives)


def _answers(endpoint: Endpoint, draws: PhaseDraws) -> list[Outcome]:
    """What both arms of every pair came to."""
    n_pairs = len(draws.pairs)
    indices = np.array([pair.pair.index for pair in draws.pairs])
    drifted = endpoint.drift * indices / sum(draws.own.pairs)
    logits = [
        draws.logits[0] + drifted + endpoint.arm + _memorised(endpoint, draws, "a"),
        draws.logits[1] + drifted + _memorised(endpoint, draws, "b"),
    ]
    luck = draws.luck()
    right = answer(luck, logits)
    n_blocks = n_pairs // _BLOCK + 1
    for side in range(2):
        failing = np.repeat(luck.random(n_blocks) < endpoint.burst, _BLOCK)[:n_pairs]
        right[side] &= ~failing
    void = (luck.random(n_pairs) < endpoint.lost) & ~right[1]
    return [
        None if lost else sign(int(a) - int(b))
        for a, b, lost in zip(right[0], right[1], void, strict=True)
    ]


def _memorised(endpoint: Endpoint, draws: PhaseDraws, arm: Arm) -> Floats:
    """Logits by pair that the arm's edits add on units which they know."""
    known: dict[str, frozenset[str]] = {}
    added = np.zeros(len(draws.pairs))
    if endpoint.memorised:
        for nth, pair in enumerate(draws.pairs):
            for edit_id in pair.on(arm):
                if edit_id not in known:
                    known[edit_id] = _learnt(endpoint, draws, edit_id)
                added[nth] += endpoint.memorised * (pair.pair.unit_id in known[edit_id])
    return added


def _learnt(endpoint: Endpoint, draws: PhaseDraws, edit_id: str) -> frozenset[str]:
    """The units that an edit knows by heart; a sentinel, which says nothing, knows none."""
    _, *born = edit_id.split("/")
    if born == ["sentinel"]:
        return frozenset()
    epoch, nth = born
    units = draws.own.gate if endpoint.leak else draws.own.design
    key = [draws.planted.seed, _LEARNT, draws.task, int(epoch[1:]), int(nth)]
    chosen = np.random.default_rng(key).permutation(len(units))[: max(1, len(units) // 5)]
    return frozenset(units[place].unit_id for place in chosen)
