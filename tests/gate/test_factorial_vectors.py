"""Every case of ``cases/factorial_vectors.json`` through the decision and the tally."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from actors.gate.factorial.binomial import tail
from actors.gate.factorial.coins import Coin, PairCoins, Sign
from actors.gate.factorial.schedule import Pair
from actors.gate.factorial.states import FactorialEdit
from actors.gate.factorial.stepup import Evidence, step_up
from actors.gate.factorial.tally import outcome, tally


class GivenEdit(msgspec.Struct):
    id: str
    W: int
    L: int
    dropped: bool
    D_seen: int


class Decision(msgspec.Struct):
    name: str
    q: str
    edits: list[GivenEdit]
    adopted: list[str]
    p: list[float]
    tau: float
    cut: float | None
    n: int


class CountedPair(msgspec.Struct):
    signs: str
    a: bool | None
    b: bool | None


class Counting(msgspec.Struct):
    pairs: list[CountedPair]
    W: list[int]
    L: list[int]
    p: list[str]


class Vectors(msgspec.Struct):
    decision: list[Decision]
    counting: Counting


def read() -> Vectors:
    path = Path(__file__).parent / "cases" / "factorial_vectors.json"
    return msgspec.json.decode(path.read_bytes(), type=Vectors, strict=False)


VECTORS = read()


@pytest.mark.parametrize("case", VECTORS.decision, ids=lambda case: case.name)
def test_decision(case: Decision) -> None:
    """Adopted ids, p-values and both thresholds."""
    edits = [
        Evidence(
            edit_id=edit.id, wins=edit.W, losses=edit.L, dropped=edit.dropped, seen=edit.D_seen
        )
        for edit in case.edits
    ]
    decided = step_up(edits, Fraction(case.q))
    assert list(decided.adopted) == case.adopted
    assert [float(p) for p in decided.p] == pytest.approx(case.p, rel=1e-12)
    assert float(decided.tau) == pytest.approx(case.tau, rel=1e-12)
    assert len(decided.adopted) == case.n
    if case.cut is None:
        assert decided.cut is None
    else:
        assert decided.cut is not None
        assert float(decided.cut) == pytest.approx(case.cut, rel=1e-12)


def test_counting() -> None:
    """Signs and both arms' correctness of six pairs, one of them void."""
    names = [f"e{i}" for i in range(3)]
    edits = [FactorialEdit(edit_id=name, task_type="c", born=1) for name in names]
    pairs = []
    for index, given in enumerate(VECTORS.counting.pairs, start=1):
        signs: list[Sign] = [1 if sign == "+" else -1 for sign in given.signs]
        pair = Pair(task_type="c", phase=1, index=index, unit_id="u")
        coins = PairCoins(pair, tuple(map(Coin, names, signs)))
        pairs.append((coins, outcome([given.a], [given.b])))
    counted = tally(edits, pairs)
    assert [edit.wins for edit in counted] == VECTORS.counting.W
    assert [edit.losses for edit in counted] == VECTORS.counting.L
    p = [tail(edit.discordant, edit.wins) for edit in counted]
    assert p == [Fraction(value) for value in VECTORS.counting.p]
    assert {edit.pairs for edit in counted} == {5}
