"""Every vector of ``cases/gate_vectors.json`` against the gate's arithmetic.

Not applicable, because the gate does not use them: the mixture cores ``beta_*`` (their
trajectory, decisions and futility), two-sided and mid-p McNemar, the two-sided bounds ``cs_p``
and ``cs_delta``, the mixture over unit scores, and the reverse e-process.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from actors.gate.by_hand import judge_blocks
from actors.gate.eprocess import UnitResult, core, exact_alpha, factor, matched_tail, unit_result
from actors.gate.mixture import harm_e, lower_bound

ALPHAS = (0.05, 0.1, 0.2)


class Trajectory(msgspec.Struct):
    W: int
    L: int
    T: int
    missing: int
    e: dict[str, float]
    e_exact: str = msgspec.field(name="e_fixed_0.5_exact")
    e_harm_beta_1_1: float
    mcnemar: dict[str, float | str]
    lower_delta_one_sided: dict[str, float]


class Outcome(msgspec.Struct):
    accept_block: int | None
    reason: str
    crit_wins: int | None
    e_final: float | None


class Endgame(msgspec.Struct):
    e_prev: float
    W_K: int
    L_K: int
    tail: float
    by_alpha: dict[str, Outcome]
    p_gate: float


class CoreDecisions(msgspec.Struct):
    anytime_p: list[float]
    accept_block: dict[str, int | None]


class Sequence(msgspec.Struct, tag="sequence", tag_field="type"):
    id: str
    blocks: list[str]
    trajectory: list[Trajectory]
    decisions: dict[str, CoreDecisions]
    endgame: Endgame
    baseline_wrong_remaining: list[int] | None = None
    futile_after_block_core_only: dict[str, dict[str, list[bool]]] | None = None


class KDraw(msgspec.Struct, tag="k_draw", tag_field="type"):
    id: str
    k: int
    baseline_successes: list[int]
    candidate: list[int]
    e_exact: str
    p_exact: str


class UnitScores(msgspec.Struct, tag="unit_scores", tag_field="type"):
    id: str
    scores: list[str]
    sign_reduction: str
    e_sign_fixed_0_5: float


class Reverse(msgspec.Struct, tag="reverse", tag_field="type"):
    id: str


class Vectors(msgspec.Struct):
    vectors: list[Sequence | KDraw | UnitScores | Reverse]


_PATH = Path(__file__).parent / "cases" / "gate_vectors.json"
ALL = msgspec.json.decode(_PATH.read_bytes(), type=Vectors).vectors
SEQUENCES = [v for v in ALL if isinstance(v, Sequence)]
K_DRAWS = [v for v in ALL if isinstance(v, KDraw)]
UNIT_SCORES = [v for v in ALL if isinstance(v, UnitScores)]
WITH_REMAINING = [v for v in SEQUENCES if v.baseline_wrong_remaining]


def plain(w: int, lost: int, tied: int) -> list[UnitResult]:
    return [
        *[UnitResult(sign=1, gain=1.0)] * w,
        *[UnitResult(sign=-1, gain=-1.0)] * lost,
        *[UnitResult(sign=0)] * tied,
    ]


def close(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-300)


def test_all_kinds_are_there() -> None:
    """The file was read whole."""
    assert (len(SEQUENCES), len(K_DRAWS), len(UNIT_SCORES), len(ALL)) == (56, 7, 6, 73)
    assert len(WITH_REMAINING) == 2


@pytest.mark.parametrize("v", SEQUENCES, ids=lambda v: v.id)
def test_trajectory(v: Sequence) -> None:
    """Counts, core (exact), harm, one-sided McNemar and lower bound after every block."""
    judged = judge_blocks(v.blocks, 0.1)
    assert len(judged.blocks) == len(v.trajectory)
    for mine, expected in zip(judged.blocks, v.trajectory, strict=True):
        assert (mine.W, mine.L, mine.T, mine.missing) == (
            expected.W,
            expected.L,
            expected.T,
            expected.missing,
        )
        assert close(mine.e, expected.e["fixed_0.5"])
        units = plain(mine.W, mine.L, mine.T)
        assert core(units) == Fraction(expected.e_exact)
        assert matched_tail(units) == Fraction(str(expected.mcnemar["one_sided_exact"]))
        assert close(harm_e(units), expected.e_harm_beta_1_1)
        for alpha in ALPHAS:
            bound = lower_bound([unit.gain for unit in units], alpha)
            assert abs(bound - expected.lower_delta_one_sided[str(alpha)]) < 1e-7


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("v", SEQUENCES, ids=lambda v: v.id)
def test_endgame(v: Sequence, alpha: float) -> None:
    """accept_block, reason, critical wins, final stake and p_gate, at three levels."""
    expected = v.endgame.by_alpha[str(alpha)]
    judged = judge_blocks(v.blocks, alpha)
    assert judged.accept_block == expected.accept_block
    assert judged.reason == expected.reason
    assert judged.crit_wins == expected.crit_wins
    assert (judged.e_final is None) == (expected.e_final is None)
    if judged.e_final is not None and expected.e_final is not None:
        assert close(judged.e_final, expected.e_final)
    assert close(judged.p_gate, v.endgame.p_gate)
    assert judged.verdict == ("reject" if expected.accept_block is None else "accept")


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("v", SEQUENCES, ids=lambda v: v.id)
def test_core_looks_alone(v: Sequence, alpha: float) -> None:
    """Every block a core look, the end not in sight."""
    expected = v.decisions["fixed_0.5"]
    for i, p in enumerate(expected.anytime_p, start=1):
        judged = judge_blocks(v.blocks[:i], alpha, wrong_remaining=1)
        assert close(judged.p_gate, p)
        first = expected.accept_block[str(alpha)]
        assert judged.accept_block == (first if first is not None and first <= i else None)


@pytest.mark.parametrize("v", WITH_REMAINING, ids=lambda v: v.id)
def test_futile_by_the_core(v: Sequence) -> None:
    """Winning all remaining baseline-wrong units would not bring the core to 1/alpha."""
    assert v.baseline_wrong_remaining is not None
    assert v.futile_after_block_core_only is not None
    for alpha in ALPHAS:
        expected = v.futile_after_block_core_only["fixed_0.5"][str(alpha)]
        for i, (left, futile) in enumerate(
            zip(v.baseline_wrong_remaining, expected, strict=True), start=1
        ):
            assert judge_blocks(v.blocks[:i], alpha, wrong_remaining=left).futile_core is futile


@pytest.mark.parametrize(
    ("blocks", "left", "verdict"),
    [
        (["TTTT"], 4, "undecided"),
        (["TTTT"], 3, "reject"),
        (["LLTT"], 5, "reject"),
        (["LLTT"], 6, "undecided"),
        (["WWWWWW"], 2, "accept"),
        (["WWWT"], 0, "reject"),
    ],
)
def test_what_remains_decides_whether_it_is_over(
    blocks: list[str], left: int, verdict: str
) -> None:
    """At .1: undecided as long as winning the rest accepts at some look."""
    assert judge_blocks(blocks, 0.1, wrong_remaining=left).verdict == verdict


@pytest.mark.parametrize("v", K_DRAWS, ids=lambda v: v.id)
def test_k_draws(v: KDraw) -> None:
    """The matched factor and the Poisson-binomial tail, exact (study, section 1.7)."""
    units = [
        unit_result([[True] * s + [False] * (v.k - s)], [bool(c)])
        for s, c in zip(v.baseline_successes, v.candidate, strict=True)
    ]
    assert core(units) == Fraction(v.e_exact)
    assert matched_tail(units) == Fraction(v.p_exact)


@pytest.mark.parametrize("v", UNIT_SCORES, ids=lambda v: v.id)
def test_unit_scores_reduce_to_signs(v: UnitScores) -> None:
    """Several questions in a unit: X_u is the sign of their sum."""
    units = []
    for text in v.scores:
        score = Fraction(text)
        n, net = score.denominator, score.numerator
        won, lost = max(net, 0), max(-net, 0)
        draws = [[False]] * won + [[True]] * lost + [[True]] * (n - won - lost)
        answers = [True] * won + [False] * lost + [True] * (n - won - lost)
        units.append(unit_result(draws, answers))
    letters = {1: "W", -1: "L", 0: "T"}
    assert "".join(letters[unit.sign] for unit in units) == v.sign_reduction
    assert close(float(core(units)), v.e_sign_fixed_0_5)


@pytest.mark.parametrize("sign", [1, -1])
def test_factor_with_one_draw(sign: Literal[1, -1]) -> None:
    """1 + X/2."""
    assert factor(UnitResult(sign=sign)) == 1 + Fraction(sign, 2)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_a_level_is_a_probability(alpha: float) -> None:
    """A level outside (0, 1) is refused."""
    with pytest.raises(ValueError, match="alpha"):
        exact_alpha(alpha)


def test_what_cannot_be_meant_is_refused() -> None:
    """A typing error is not a tie."""
    with pytest.raises(ValueError, match="'x'"):
        judge_blocks(["WxL"], 0.1)
    with pytest.raises(ValueError, match="-1"):
        judge_blocks(["W"], 0.1, wrong_remaining=-1)
