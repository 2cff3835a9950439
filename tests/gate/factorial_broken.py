"""The null world with one thing broken on purpose: what the tests of the coin lemma must notice.

Each is a way in which a factorial gate can lie without any row looking odd: coins that are not
fair, coins that are chosen once the outcome is known, a proposer that is shown what its edits are
tested on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

import actors.gate.factorial.coins as coins_of
import actors.gate.factorial_run as at_work
from actors.gate.factorial.coins import Sign
from actors.gate.factorial.schedule import Pair
from actors.gate.phase import answered
from protocol.factorial import FactorialPlan
from protocol.factorial_rows import PairRow
from protocol.ledger import Record
from tests.gate.factorial_endpoint import WORLDS
from tests.gate.factorial_null import Come, NullHouse, training, units

__all__ = ["BROKEN", "broken_training", "forget_coins", "show_gate_units"]


def broken_training(seed: int, name: str) -> Come:
    """A training with this thing broken."""
    return BROKEN[name](seed)


def _biased(seed: int) -> Come:
    """Nine heads in ten, of edits alone, beside an endpoint that prefers an arm."""

    def biased(seed: int, pair: Pair, edit_id: str) -> Sign:
        heads = random.Random(f"{seed} {pair} {edit_id}").random() < 0.9
        fair: Sign = 1 if heads else -1
        return fair

    with _instead(coins_of, "fair_coin", biased):
        return training(seed, WORLDS["drift"])


def _afterwards(seed: int) -> Come:
    """In three pairs of ten that have a winner the coins are what the outcome makes them."""
    luck = random.Random(seed)

    def late(row: PairRow, a: Sequence[bool | None], b: Sequence[bool | None]) -> PairRow | None:
        whole = answered(row, a, b)
        if whole is None or not whole.outcome or luck.random() > 0.3:
            return whole
        drawn = msgspec.json.decode(whole.coins)
        chosen = [[name, whole.outcome, virtual] for name, _, virtual in drawn]
        return msgspec.structs.replace(whole, coins=msgspec.json.encode(chosen).decode())

    with _instead(at_work, "answered", late):
        return training(seed, WORLDS["plain"])


def _shown(seed: int) -> Come:
    """The editor learns from the units that are tested on."""

    def widen(house: NullHouse) -> None:
        house.strict = False
        show_gate_units(house)

    return training(seed, WORLDS["memorise"], widen)


def show_gate_units(house: NullHouse) -> None:
    """Tell the trainer that the other fold is the design fold."""

    def shown(plan: FactorialPlan) -> FactorialPlan:
        folds = []
        for fold in plan.folds:
            own = [unit.unit_id for unit in units() if unit.task_type == fold.task_type]
            tested = tuple(unit for unit in own if unit not in fold.design)
            folds.append(msgspec.structs.replace(fold, design=tested))
        return msgspec.structs.replace(plan, folds=tuple(folds))

    house.on_plan = shown


def forget_coins(house: NullHouse) -> None:
    """No pair's coins reach the ledger before it is drawn."""
    write = house.ledger.write

    def late(request: Record) -> None:
        kept = tuple(
            row for row in request.rows if not (isinstance(row, PairRow) and row.state == "open")
        )
        write(msgspec.structs.replace(request, rows=kept))

    house.ledger.write = late  # type: ignore[method-assign]  # it is what is broken


BROKEN: Mapping[str, Callable[[int], Come]] = {
    "biased": _biased,
    "afterwards": _afterwards,
    "shown": _shown,
}
"""By name."""


@contextmanager
def _instead(module: object, name: str, other: object) -> Iterator[None]:
    real = getattr(module, name)
    setattr(module, name, other)
    try:
        yield
    finally:
        setattr(module, name, real)
