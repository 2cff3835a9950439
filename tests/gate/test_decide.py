"""The rules around the looks: missing answers, stops, guardrails."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.gate.decide import Answers, LadderUnit, Rules, Standing, decide
from actors.gate.eprocess import UnitResult, factor, judge, unit_result
from actors.gate.futility import Chance, chances, conditional_power
from actors.gate.looks import block_ends

RULES = Rules(alpha=0.1, max_missing_share=0.05, futility_power=0.1, harm_e=10.0)
PATIENT = Rules(alpha=0.1, max_missing_share=0.05, futility_power=0.0, harm_e=math.inf)
THREE_DRAWS = st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=3)


def ladder(baseline: str, k: int = 1) -> tuple[LadderUnit, ...]:
    """One question per unit; 1 right, 0 wrong in all draws, - missing."""
    return tuple(
        LadderUnit(unit_id=f"u{i}", draws=(() if b == "-" else (b == "1",) * k,))
        for i, b in enumerate(baseline)
    )


def go(units: tuple[LadderUnit, ...], answers: str, rules: Rules = PATIENT) -> Standing | None:
    """Run through the blocks that the answers fill; 1 right, 0 wrong, M missing."""
    answered = [(None if a == "M" else a == "1",) for a in answers]
    blocks: list[list[Answers]] = []
    standing = None
    for start, end in itertools.pairwise((0, *block_ends(len(units)))):
        if end > len(answers):
            break
        blocks.append(list(answered[start:end]))
        standing = decide(units, blocks, rules)
        if standing is not None:
            break
    return standing


def ended(units: tuple[LadderUnit, ...], answers: str, rules: Rules = PATIENT) -> Standing:
    """The same, for a test that has to end."""
    standing = go(units, answers, rules)
    assert standing is not None
    return standing


def test_four_wins_of_eight_are_accepted_at_a_tenth() -> None:
    """One look: the exact one-sided McNemar test, 1/16."""
    standing = ended(ladder("00001111"), "11111111")
    assert (standing.verdict, standing.reason) == ("accept", "endgame")
    assert (standing.wins, standing.losses, standing.ties) == (4, 0, 4)
    assert standing.p_gate == pytest.approx(1 / 16)
    assert standing.e_value == pytest.approx(1.5**4)
    assert standing.lower_bound is not None
    assert standing.lower_bound < 0.5  # far below the (W - L) / n that is never reported
    assert [look.units for look in standing.looks] == [4, 8]


def test_an_early_core_look() -> None:
    """30 units: six wins among the first twelve are 1.5^6 >= 10."""
    standing = ended(ladder("000000" + "1" * 24), "1" * 30)
    assert (standing.verdict, standing.reason, standing.evaluated) == ("accept", "core", 12)


def test_no_way_to_accept_is_untestable_and_free() -> None:
    """Three baseline-wrong units cannot reach .1 whatever happens."""
    standing = decide(ladder("00011111"), [], RULES)
    assert standing is not None
    assert (standing.verdict, standing.reason) == ("untestable", "futile_exact")
    assert decide(ladder("00001111"), [], RULES) is None
    assert decide(ladder("00011111", k=3), [], RULES) is None  # 1/4 each: three draws see more


def test_exact_futility_stops_as_soon_as_it_is_certain() -> None:
    """One of four wrong units not won: the rest of the ladder is not spent."""
    standing = ended(ladder("0000" + "1" * 12), "0111" + "1" * 12)
    assert (standing.verdict, standing.reason, standing.evaluated) == ("reject", "futile_exact", 4)


def test_conditional_power_stops() -> None:
    """Two lost, seven wrong left: all seven would have to be won, .65^7."""
    units = ladder("1100" + "0" * 7 + "1" * 5)
    standing = ended(units, "0000", RULES)
    assert (standing.verdict, standing.reason) == ("reject", "futile_power")
    assert go(units, "0000", PATIENT) is None


def test_harm_stops() -> None:
    """Seven losses and no win: M(L, W) = (2^8 - 1) / 8 > 10."""
    rules = msgspec.structs.replace(PATIENT, harm_e=10.0)
    standing = ended(ladder("1" * 8 + "0" * 22), "00000001", rules)
    assert (standing.verdict, standing.reason) == ("reject", "harm")


def test_P1_4_missing_is_neither_win_nor_loss() -> None:
    """P1-4: in either arm the pair is excluded."""
    standing = ended(ladder("0000" + "-" + "1" * 15), "1111" + "0" + "M" + "1" * 14)
    assert (standing.wins, standing.losses, standing.ties) == (4, 0, 14)
    assert (standing.missing, standing.evaluated) == (2, 18)


def test_many_missing_must_pass_the_worst_case() -> None:
    """A missing answer where the baseline was right counts as a loss, and then .1 is missed."""
    standing = ended(ladder("0000" + "1" * 12), "1111" + "1" * 10 + "MM")
    assert (standing.verdict, standing.reason) == ("undecided", "missing")
    assert ended(ladder("0" * 8 + "1" * 8), "1" * 14 + "MM").verdict == "accept"


def test_missing_where_the_baseline_was_wrong_is_a_tie_in_the_worst_case() -> None:
    """Nothing can be lost there."""
    assert ended(ladder("0" * 6 + "1" * 10), "1111" + "MM" + "1" * 10).verdict == "accept"


def test_an_accept_held_back_at_a_look_may_come_at_the_next() -> None:
    """The worst case fails at twelve units and passes at thirty."""
    units = ladder("000000" + "1" * 6 + "0" * 6 + "1" * 12)
    standing = ended(units, "111111" + "MMMM" + "1" * 20)
    assert (standing.verdict, standing.reason, standing.evaluated) == ("accept", "endgame", 26)


def test_a_loss_of_evidence_is_not_a_rejection() -> None:
    """What is missing could have been won: undecided, to be resumed."""
    standing = ended(ladder("0000" * 3 + "1" * 4), "M" * 16)
    assert (standing.verdict, standing.reason) == ("undecided", "missing")


def test_a_lost_baseline_is_not_untestable() -> None:
    """No draw came through: the class was not judged."""
    standing = decide(ladder("-" * 8), [], RULES)
    assert standing is not None
    assert (standing.verdict, standing.reason) == ("undecided", "missing")


def test_too_few_units_decide_nothing() -> None:
    """min(8, N) units have to be evaluated, even where the worst case accepts."""
    loose = msgspec.structs.replace(PATIENT, max_missing_share=1.0)
    standing = ended(ladder("0" * 12), "1" * 5 + "M" * 7, loose)
    assert (standing.verdict, standing.reason) == ("undecided", "guardrail")


def test_solid_units_may_not_be_lost_beyond_their_record() -> None:
    """Nine wins, two losses pass; the same two losses on proven units do not."""
    units = ladder("0" * 9 + "1" * 7)
    answers = "1" * 9 + "00" + "1" * 5
    assert ended(units, answers).verdict == "accept"
    proven = tuple(
        msgspec.structs.replace(unit, ema=0.98 if unit.draws[0][0] else None) for unit in units
    )
    standing = ended(proven, answers)
    assert (standing.verdict, standing.reason) == ("reject", "guardrail")


def test_a_candidate_is_not_stopped_for_ordinary_regressions() -> None:
    """Two of ten once-right units lost: a fixed share would reject everything."""
    assert ended(ladder("0" * 10 + "1" * 10), "1" * 10 + "00" + "1" * 8).verdict == "accept"


def test_blocks_have_to_fit() -> None:
    """Half a block is a bug of the caller."""
    with pytest.raises(ValueError, match="do not fit"):
        decide(ladder("0" * 8), [[(True,)] * 3], RULES)
    with pytest.raises(ValueError, match="answers to"):
        decide(ladder("0" * 8), [[(True, True)] * 4], RULES)
    with pytest.raises(ValueError, match="without a baseline draw"):
        unit_result([[]], [True])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([8, 16, 24, 30]), st.sampled_from([1, 3]))
def test_exact_futility_never_changes_an_accept(seed: int, n: int, k: int) -> None:
    """Study 1.4: with and without the rule the same candidates are accepted."""
    draw = random.Random(seed)
    units = tuple(
        LadderUnit(unit_id=f"u{i}", draws=(tuple(draw.random() < 0.5 for _ in range(k)),))
        for i in range(n)
    )
    answers = "".join(draw.choice("0111") for _ in range(n))
    results = [unit_result(u.draws, [a == "1"]) for u, a in zip(units, answers, strict=True)]
    groups = [results] if n <= 20 else [results[:12], results[12:]]
    plain = judge(groups, Fraction(1, 10), ended=True).accepted is not None
    standing = decide(units, [], PATIENT) or ended(units, answers)
    assert (standing.verdict == "accept") == (plain and standing.reason != "guardrail")


def brute_force(ahead: list[Chance], seen: list[list[UnitResult]], passed: int) -> float:
    """Every continuation of the last group, at .2."""
    total = 0.0
    for picks in itertools.product((0, 1), repeat=len(ahead)):
        p = math.prod(c.weights[i] for c, i in zip(ahead, picks, strict=True))
        last = [c.results[i] for c, i in zip(ahead, picks, strict=True)]
        total += p * any(judge([*seen, last], Fraction(1, 5), ended=True).accepts[passed:])
    return total


def test_conditional_power_is_exact_for_one_draw() -> None:
    """Against brute force over every continuation."""
    seen = [unit_result([[False]], [True])] * 2
    ahead = [chances(((b,),), 0.65, 0.08) for b in (False, False, True, False)]
    power = conditional_power([seen, []], [[], ahead], 0.2, passed=1)
    assert power == pytest.approx(brute_force(ahead, [seen], 1))
    assert 0 < power < 1


def test_sampled_power_agrees_with_brute_force_within_its_error() -> None:
    """Three draws; and it is repeatable."""
    ahead = [chances(((b,) * 3,), 0.65, 0.08) for b in [False] * 6 + [True] * 4]
    sampled = conditional_power([[]], [ahead], 0.2)
    assert abs(sampled - brute_force(ahead, [], 0)) < 0.1
    assert conditional_power([[]], [ahead], 0.2) == sampled


@given(THREE_DRAWS)
def test_a_better_answer_never_lowers_the_stake(draws: list[list[bool]]) -> None:
    """One more right answer: factor and sign can only rise, which the best case relies on."""
    n = len(draws)
    results = [unit_result(draws, [q < right for q in range(n)]) for right in range(n + 1)]
    factors = [factor(result) for result in results]
    assert factors == sorted(factors)
    assert [r.sign for r in results] == sorted(r.sign for r in results)


@given(THREE_DRAWS, st.lists(st.booleans(), min_size=3, max_size=3))
def test_the_factor_is_a_fair_bet(draws: list[list[bool]], extra: list[bool]) -> None:
    """Whichever of the k + 1 exchangeable draws is the candidate, the mean factor is 1."""
    n = len(draws)
    rounds = [[question[d] for question in draws] for d in range(3)] + [extra[:n]]
    total = Fraction(0)
    for mine, candidate in enumerate(rounds):
        others = [[rounds[d][q] for d in range(4) if d != mine] for q in range(n)]
        total += factor(unit_result(others, candidate))
    assert total == 4
