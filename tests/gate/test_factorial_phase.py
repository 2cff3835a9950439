"""The factorial gate's rows, there and back."""

from __future__ import annotations

import msgspec
import pytest

from actors.gate.factorial.coins import draw_coins
from actors.gate.factorial.schedule import ScheduleError, phase_pairs
from actors.gate.factorial.states import FactorialEdit
from actors.gate.phase import (
    answered,
    arm_places,
    differences,
    editor_on,
    edits_as_born,
    logged,
    opened,
    schedule_from,
    schedule_of,
    schedule_rows,
    sentinel_rows,
    voided,
)
from tests.gate.factorial_house import CLASS, SEED, SETTINGS, edit_row, units_of

SCHEDULE = schedule_of(SETTINGS, SEED, 2, units_of(12))
PAIRS = phase_pairs(SCHEDULE, CLASS, 1)
EDITS = edits_as_born((*sentinel_rows(SCHEDULE), edit_row("a", 1), edit_row("b", 2)))


def test_a_schedule_survives_its_rows() -> None:
    """Every fold, count and pair is the same afterwards."""
    rows = schedule_rows(SCHEDULE)
    assert schedule_from(rows) == SCHEDULE
    assert differences(rows, rows) == ()
    (row,) = rows
    other = msgspec.structs.replace(row, budget=9, counts="[]")
    assert differences(rows, (other,)) == (f"{CLASS}: budget differs", f"{CLASS}: counts differs")
    assert differences(rows, ()) == (f"{CLASS}: is scheduled in one of them only",)
    with pytest.raises(LookupError, match="no factorial schedule"):
        schedule_from(())


def test_a_budget_too_small_says_what_is_needed() -> None:
    """ScheduleError names the key."""
    with pytest.raises(ScheduleError, match=r"gate\.budget"):
        schedule_of(msgspec.structs.replace(SETTINGS, budget=3), SEED, 2, units_of(12))


def test_a_pair_survives_its_row() -> None:
    """Coins before, outcome after, void for good."""
    first, *_ = rows = opened(SEED, PAIRS, EDITS, {})
    assert [logged(row).coins for row in rows] == [draw_coins(SEED, p, EDITS) for p in PAIRS]
    assert not logged(first).drawn
    drawn = answered(first, (True, False), (False, False))
    assert drawn is not None
    assert (logged(drawn).outcome, logged(drawn).drawn) == (1, True)
    assert (drawn.right_a, drawn.right_b) == ("[true,false]", "[false,false]")
    assert answered(first, (True, None), (False, False)) is None
    gone = voided(first, (True, None), (False, False))
    assert (logged(gone).outcome, logged(gone).drawn, gone.right_a) == (None, True, "[true,null]")
    assert gone.coins == drawn.coins == first.coins


def test_written_coins_are_never_drawn_again() -> None:
    """The same edits: the rows as they are; others: an error while a pair waits, else the rows."""
    rows = {row.pair: row for row in opened(SEED, PAIRS, EDITS, {})}
    assert opened(SEED, PAIRS, EDITS, rows) == tuple(rows.values())
    fewer = EDITS[:2]
    with pytest.raises(ValueError, match=r"pair 1: run\.db has"):
        opened(SEED, PAIRS, fewer, rows)
    short = {pair: row for pair, row in rows.items() if pair != PAIRS[-1].index}
    with pytest.raises(ValueError, match=r"run\.db has nothing"):
        opened(SEED, PAIRS, EDITS, short)
    done = {pair: voided(row, (), ()) for pair, row in rows.items()}
    assert opened(SEED, PAIRS, fewer, done) == tuple(done.values())


def test_an_editor_draw_flips_live_edits_only() -> None:
    """Own coins, the sentinel never, of a group at most one."""
    group = [
        FactorialEdit(edit_id=name, task_type=CLASS, born=1, group="x") for name in ("c", "d", "e")
    ]
    said = [editor_on(SEED, 2, f"u{unit}", (*EDITS, *group)) for unit in range(200)]
    assert set.union(*map(set, said)) == {"a", "b", "c", "d", "e"}
    assert all(len(names & {"c", "d", "e"}) <= 1 for names in said)
    assert 70 < sum("a" in names for names in said) < 130
    assert said[3] == editor_on(SEED, 2, "u3", (*EDITS, *group))
    assert said != [editor_on(SEED, 3, f"u{unit}", (*EDITS, *group)) for unit in range(200)]


def test_places_in_canonical_order() -> None:
    """By id, whatever order they are named in; a sentinel has no place."""
    rows = [edit_row("a", 1), edit_row("b", 2), edit_row("c", 3)]
    assert arm_places(("c", "a", "counting-problem/sentinel"), rows) == (0, 2)
