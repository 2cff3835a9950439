"""A class's course from its log: the same as counting while it ran, wherever it stopped."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.gate.factorial.coins import draw_coins
from actors.gate.factorial.course import LoggedPair, OpenPairs, course
from actors.gate.factorial.drop import drop_harmful
from actors.gate.factorial.schedule import UnitSize, make_schedule, phase_pairs
from actors.gate.factorial.states import FactorialEdit
from actors.gate.factorial.tally import Outcome, tally

DROP_HARM = Fraction(3, 10)
N_EPOCHS = 2
SCHEDULE = make_schedule(
    {"c": [UnitSize(f"u{i}") for i in range(8)]}, seed=4, n_epochs=N_EPOCHS, budget=150
)
EDITS = tuple(
    FactorialEdit(edit_id=f"e{born}/{i}", task_type="c", born=born, sentinel=(born, i) == (1, 0))
    for born in (1, 2)
    for i in range(3)
)
N_PAIRS = SCHEDULE.n_pairs

outcomes: st.SearchStrategy[list[Outcome]] = st.lists(
    st.sampled_from([-1, 1, -1, 1, 0, None]), min_size=N_PAIRS, max_size=N_PAIRS
)


def ran(found: list[Outcome]) -> tuple[tuple[FactorialEdit, ...], list[LoggedPair]]:
    """A run that was never stopped: its edits in the end, and its log."""
    edits, log = EDITS, []
    for phase in range(1, SCHEDULE.certification + 1):
        coins = [draw_coins(4, pair, edits) for pair in phase_pairs(SCHEDULE, "c", phase)]
        drawn = [(one, found[one.pair.index - 1]) for one in coins]
        log += [LoggedPair(one, o, True) for one, o in drawn]
        edits = tally(edits, drawn)
        if phase <= N_EPOCHS:
            edits = drop_harmful(edits, DROP_HARM)
    return edits, log


@settings(deadline=None, max_examples=60)
@given(outcomes)
def test_the_log_tells_the_whole_course(found: list[Outcome]) -> None:
    """Counts and drops, from the log in any order."""
    ended, log = ran(found)
    again = course(EDITS, log[::-1], DROP_HARM, until=3, n_epochs=N_EPOCHS)
    assert again == ended


@settings(deadline=None, max_examples=60)
@given(outcomes, st.integers(0, N_PAIRS - 1))
def test_a_stop_in_mid_phase_changes_nothing(found: list[Outcome], stopped: int) -> None:
    """What is resumed draws the coins that the log has, and ends as a run without a stop."""
    ended, log = ran(found)
    phase = log[stopped].coins.pair.phase
    kept = [LoggedPair(pair.coins) if place >= stopped else pair for place, pair in enumerate(log)]
    before = course(EDITS, kept, DROP_HARM, until=phase - 1, n_epochs=N_EPOCHS)
    for pair in log:
        if pair.coins.pair.phase == phase:
            assert draw_coins(4, pair.coins.pair, before) == pair.coins
    with pytest.raises(OpenPairs, match=f"phase {phase}: pairs {stopped + 1}"):
        course(EDITS, kept, DROP_HARM, until=phase, n_epochs=N_EPOCHS)
    assert course(EDITS, log, DROP_HARM, until=3, n_epochs=N_EPOCHS) == ended


def test_edits_come_as_they_were_born() -> None:
    """Counts that are there already would be counted twice."""
    ended, log = ran([1] * N_PAIRS)
    with pytest.raises(ValueError, match="as they were born"):
        course(ended, log, DROP_HARM, until=1, n_epochs=N_EPOCHS)
