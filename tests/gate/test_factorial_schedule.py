"""What a factorial run draws: fixed, blind, within its budget."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.gate.factorial.preview import (
    adoption_probability,
    nominal_level,
    preview,
    preview_lines,
    resolvable_gain,
)
from actors.gate.factorial.schedule import (
    Schedule,
    ScheduleError,
    UnitSize,
    make_schedule,
    phase_pairs,
)

SIZES = (8, 8, 10, 12, 14, 16, 20, 24, 30, 40, 50, 68)
Q, CAP = Fraction(3, 20), Fraction(1, 10)


def units_of(sizes: tuple[int, ...], n_questions: int = 1) -> dict[str, list[UnitSize]]:
    return {
        f"c{task:02d}": [UnitSize(f"c{task:02d}/v{i}", n_questions) for i in range(n)]
        for task, n in enumerate(sizes)
    }


def study(seed: int = 1, n_epochs: int = 3, budget: int = 3852) -> Schedule:
    return make_schedule(units_of(SIZES), seed=seed, n_epochs=n_epochs, budget=budget)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    sizes = draw(st.lists(st.integers(2, 40), min_size=1, max_size=6))
    n_epochs = draw(st.integers(1, 5))
    floor = n_epochs * sum(sizes) + 16 * n_epochs
    return make_schedule(
        units_of(tuple(sizes)),
        seed=draw(st.integers(0, 2**31)),
        n_epochs=n_epochs,
        budget=floor + draw(st.integers(0, 900)),
    )


def test_the_study_s_world() -> None:
    """A quarter of 300 units, 1810 pairs, an eighth of them per epoch, all but one draw spent."""
    schedule = study()
    assert sum(len(own.design) for own in schedule.classes) == 77
    assert schedule.n_pairs == 1810
    by_phase = [sum(phase) for phase in zip(*(own.pairs for own in schedule.classes), strict=True)]
    assert by_phase == [226, 226, 226, 1132]
    assert schedule.draws == schedule.rollouts == 3851
    whole = sum(n**0.7 for n in SIZES)
    for n, own in zip(SIZES, schedule.classes, strict=True):
        assert all(
            abs(pairs - total * n**0.7 / whole) <= 1
            for pairs, total in zip(own.pairs, by_phase, strict=True)
        )


@settings(deadline=None)
@given(schedules())
def test_within_the_budget_and_fair_to_units(schedule: Schedule) -> None:
    """Every unit floor or ceil of its share in each phase; no draw is left over by more than
    rounding, none too many."""
    assert schedule.budget - 1 <= schedule.draws <= schedule.budget
    for own in schedule.classes:
        assert len(own.counts) == schedule.certification
        for counts in own.counts:
            assert max(counts) - min(counts) <= 1


@settings(deadline=None)
@given(schedules())
def test_folds_are_disjoint_and_proposals_never_see_a_gate_unit(schedule: Schedule) -> None:
    """Design and gate share no unit, together they are the class, and pairs are of the gate."""
    for own in schedule.classes:
        design, gate = ({unit.unit_id for unit in part} for part in (own.design, own.gate))
        n = len(design) + len(gate)
        assert not design & gate
        assert len(design) == max(1, (n + 2) // 4)
        for phase in range(1, schedule.certification + 1):
            pairs = phase_pairs(schedule, own.task_type, phase)
            assert {pair.unit_id for pair in pairs} <= gate
            assert Counter(pair.unit_id for pair in pairs) == Counter(
                {
                    unit.unit_id: n
                    for unit, n in zip(own.gate, own.counts[phase - 1], strict=True)
                    if n
                }
            )


@settings(deadline=None)
@given(schedules())
def test_pairs_have_one_number_each(schedule: Schedule) -> None:
    """From 1 to the class's last, over all phases."""
    for own in schedule.classes:
        numbers = [
            pair.index
            for phase in range(1, schedule.certification + 1)
            for pair in phase_pairs(schedule, own.task_type, phase)
        ]
        assert numbers == list(range(1, sum(own.pairs) + 1))


def test_a_function_of_the_seed() -> None:
    """The same again, whatever order the units come in; another seed folds otherwise."""
    turned = {name: units[::-1] for name, units in reversed(units_of(SIZES).items())}
    assert study() == make_schedule(turned, seed=1, n_epochs=3, budget=3852)
    assert study(2).classes[11].design != study().classes[11].design
    assert phase_pairs(study(), "c11", 4) == phase_pairs(study(), "c11", 4)


def test_other_numbers_of_epochs() -> None:
    """3/8 of the pairs are spread over the epochs, however many there are."""
    for n_epochs in (1, 2, 6):
        schedule = study(n_epochs=n_epochs)
        certify = sum(own.pairs[-1] for own in schedule.classes)
        assert certify == schedule.n_pairs - int(schedule.n_pairs * 3 / 8)


def test_units_of_several_questions_cost_more_rollouts() -> None:
    """A draw of a unit asks all its questions."""
    schedule = make_schedule(units_of((8, 20), 3), seed=1, n_epochs=3, budget=400)
    assert schedule.rollouts == 3 * schedule.draws


def test_a_fold_of_every_class_is_random() -> None:
    """No unit is always in the design fold."""
    chosen = Counter(
        unit.unit_id
        for seed in range(200)
        for unit in make_schedule(units_of((8,)), seed=seed, n_epochs=1, budget=100)
        .classes[0]
        .design
    )
    assert len(chosen) == 8
    assert all(25 < n < 80 for n in chosen.values())


def test_which_units_are_drawn_once_more_is_random() -> None:
    """What a phase leaves over goes to other units in other phases and with other seeds."""
    more: Counter[int] = Counter()
    for seed in range(60):
        own = make_schedule(units_of((20,)), seed=seed, n_epochs=3, budget=160).of("c00")
        for counts in own.counts:
            more.update(place for place, n in enumerate(counts) if n > min(counts))
    assert len(more) == 15
    assert max(more.values()) < 2 * min(more.values())


@pytest.mark.parametrize(
    ("units", "budget", "message"),
    [
        ({}, 100, "no class"),
        (units_of((1, 8)), 100, "c00: of 1 unit"),
        ({"c": [UnitSize("u"), UnitSize("u")]}, 100, "c: a unit is given twice"),
        ({"c": [UnitSize("u"), UnitSize("v", 0)]}, 100, "without questions: v"),
        (units_of((8,)), 21, "needs 22 in all"),
        (units_of((8,)), -5, "gate.budget: -5 draws"),
    ],
)
def test_what_makes_no_schedule(
    units: dict[str, list[UnitSize]], budget: int, message: str
) -> None:
    """Said before anything is drawn."""
    with pytest.raises(ScheduleError, match=message):
        make_schedule(units, seed=1, n_epochs=3, budget=budget)
    make_schedule(units_of((8,)), seed=1, n_epochs=3, budget=22)


def test_other_settings_are_checked() -> None:
    """Epochs and fold."""
    with pytest.raises(ScheduleError, match=r"trainer\.epochs"):
        make_schedule(units_of((8,)), seed=1, n_epochs=0, budget=100)
    with pytest.raises(ScheduleError, match=r"gate\.fold"):
        make_schedule(units_of((8,)), seed=1, n_epochs=1, budget=100, fold=Fraction(1))
    with pytest.raises(ValueError, match="phase 5"):
        phase_pairs(study(), "c00", 5)
    with pytest.raises(KeyError):
        phase_pairs(study(), "other", 1)


def test_preview() -> None:
    """Rollouts, and the gain that each class can resolve; calls hang on more than a schedule."""
    shown = preview(study(), Q, CAP)
    first = [own.gain_first for own in shown.classes if own.gain_first is not None]
    assert len(first) == 12
    assert first == sorted(first, reverse=True)
    assert 0.08 < first[-1] < 0.12
    last = shown.classes[-1]
    assert last.gain_last is not None
    assert last.gain_last >= first[-1]
    lines = preview_lines(shown)
    assert "3851 rollouts; all fixed now" in lines[0]
    assert "calls" not in " ".join(lines)
    assert lines[12].startswith("c11: 17 units to learn from, 51 to test on, ")
    assert len(lines) == 14


def test_resolvable_gain() -> None:
    """Falls with pairs and with a milder level; too few pairs resolve nothing."""
    level = nominal_level(Q, CAP)
    assert level == Fraction(27, 2000)
    assert resolvable_gain(6, level, 0.8) is None
    gains = [resolvable_gain(n, level, 0.8) or 2.0 for n in (10, 40, 160, 640)]
    assert gains == sorted(gains, reverse=True)
    assert (resolvable_gain(40, CAP, 0.8) or 2.0) < gains[1]


def test_adoption_probability_is_exact_where_it_can_be_told() -> None:
    """All pairs discordant and won, and nothing but luck."""
    assert adoption_probability(7, 1.0, Fraction(1, 128), 0.3) == pytest.approx(1.0)
    assert adoption_probability(6, 1.0, Fraction(1, 128), 0.3) == 0.0
    assert adoption_probability(2, 0.0, Fraction(1, 4), 1.0) == pytest.approx(0.25)
    assert adoption_probability(400, 0.0, Fraction(1, 10), 0.3) <= 0.1
