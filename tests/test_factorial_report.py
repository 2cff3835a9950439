"""What is told of the edits that were tested together."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.config import ROOT, load_config
from actors.dataset.units import make_units
from actors.factorial_report import (
    factorial_epochs,
    factorial_part,
    schedule_text,
    true_gains,
)
from actors.factorial_view import factorial_view, void_words
from actors.ledger.reader import open_reader
from actors.ledger.sqlite import Database
from actors.system import read_seed_package
from actors.tables import render
from actors.twin.world import load_world
from protocol.dataset import ClassCount, DataSummary, Question
from protocol.evolver import Edit
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow
from protocol.ledger import Record
from protocol.rows import AnyRow
from tests.commands.factorial_house import make_factorial

pytestmark = pytest.mark.anyio

DEMO = ROOT / "seeds" / "demo"
CLASS = "Counting Problem"
RUN = FactorialRunRow(
    run=1,
    q="3/20",
    cap="1/10",
    n_edits=2,
    tau=0.09,
    cut=0.01,
    passed=1,
    adopted=1,
    sentinel_wins=10,
    sentinel_losses=9,
    sentinel_p=0.8,
    ok=True,
)


def edit_row(edit_id: str, position: int, line: str, **changes: object) -> FactorialEditRow:
    """An edit that is decided."""
    edit = Edit(op="append", target="", content=line, support=(), reason="")
    row = FactorialEditRow(
        edit_id=edit_id,
        task_type=CLASS,
        born=1,
        position=position,
        edit=msgspec.json.encode(edit).decode(),
        group_id=None,
        sentinel=False,
        proposed_by="e1/counting-problem/s1",
        state="adopted",
        wins=9,
        losses=1,
        seen=10,
        pairs=20,
        p=0.0107,
        effect=0.4,
        low=0.1,
        high=0.7,
    )
    return msgspec.structs.replace(row, **changes)


async def _written(folder: Path, *rows: AnyRow) -> Path:
    database = await Database.open(folder / "run.db")
    await database.apply([Record(rows=rows)])
    await database.close()
    return folder / "run.db"


async def test_every_edit_stands_on_a_line(tmp_path: Path) -> None:
    """State, counts, p, interval; D of a dropped edit is what it has seen; sentinels last."""
    rows = (
        edit_row("e1/c/1", 1, "- a"),
        edit_row("e1/c/2", 2, "- b", state="dropped", wins=0, losses=3, seen=8, p=1.0),
        edit_row("c/sentinel", 0, "", edit="", sentinel=True, state="live"),
        RUN,
    )
    path = await _written(tmp_path, *rows)
    with open_reader(path) as reader:
        told = render([factorial_part(reader, {"e1/c/1": 0.1, "e1/c/2": 0.0})])
    assert void_words(RUN) == ""
    lines = [line.split() for line in told.splitlines()]
    assert lines[2][:7] == ["e1/c/1", "adopted", "9", "1", "10", "20", "0.0107"]
    assert lines[2][-2:] == ["+10.0%", "helpful"]
    assert "selected" in lines[2]
    assert lines[3][:7] == ["e1/c/2", "dropped", "0", "3", "8", "20", "1"]
    assert lines[3][-1] == "useless"
    assert lines[4][:2] == ["c/sentinel", "sentinel"]
    assert "1 of 2 edits adopted: q 0.15, cap 0.1, tau 0.09, cut 0.01" in told
    assert "they look like coins" in told
    assert "(T7)" in told
    assert "By simulation only" in told
    assert "small effects (2-8 points)" in told


async def test_failing_sentinels_are_shouted(tmp_path: Path) -> None:
    """The claims are void, in words that cannot be passed over; without a truth, none is shown."""
    run = msgspec.structs.replace(RUN, ok=False, adopted=0, cut=None, sentinel_p=1e-5)
    path = await _written(tmp_path, edit_row("e1/c/1", 1, "- a", state="rejected"), run)
    with open_reader(path) as reader:
        told = render([factorial_part(reader, {})])
    assert "CLAIMS ARE VOID" in void_words(run)
    assert "THEY DO NOT LOOK LIKE COINS" in told
    assert "no p is small enough" in told
    assert "No claim stands" in told
    assert "Guarantee" not in told
    assert "truly" not in told


def test_the_epochs_tell_pairs_instead_of_a_ladder(tmp_path: Path) -> None:
    """New edits, pairs with the certification's in the last line, void ones, drops, adoptions."""
    made = make_factorial(tmp_path)
    with open_reader(made.path / "run.db") as reader:
        view = factorial_view(reader)
        assert view is not None
        told = render([factorial_epochs(reader, view)])
    rows = [line.split() for line in told.splitlines()]
    assert "tests" not in rows[1]
    planned = [view.in_phase(phase, "planned") for phase in (1, 2, 3)]
    assert rows[3][0] == "1"
    assert rows[3][-5:] == ["2", f"{planned[0]}/{planned[0]}", "1", "1", "0"]
    last = planned[1] + planned[2]
    assert rows[4][-5:] == ["1", f"{last}/{last}", "0", "0", "1"]
    assert f"{planned[2]} of {planned[2]} pairs to certify" in told


async def test_a_run_under_way_has_no_numbers(tmp_path: Path) -> None:
    """Nothing of W, L or p is there to be told before the decision."""
    row = edit_row("e1/c/1", 1, "- a", state="live", wins=None, losses=None, p=None)
    path = await _written(tmp_path, row)
    with open_reader(path) as reader:
        told = render([factorial_part(reader, {})])
    assert told.splitlines()[2].split() == ["e1/c/1", "live", *"------"]


async def test_the_planted_truth_of_an_edit(tmp_path: Path) -> None:
    """Alone on the base: a lesson of the world helps, a phrase of nobody's changes nothing."""
    world = load_world((DEMO / "world.json").read_bytes())
    questions = _questions()
    lesson = next(lesson for lesson in world.lessons if lesson.task_type == CLASS)
    path = await _written(
        tmp_path,
        edit_row("e1/c/1", 1, f"- {lesson.key}"),
        edit_row("e1/c/2", 2, "- Nothing in particular."),
    )
    config, base = load_config(None), read_seed_package(DEMO)
    with open_reader(path) as reader:
        gains = true_gains(reader, config, base, world, questions)
    assert gains["e1/c/1"] > 0
    assert gains["e1/c/2"] == pytest.approx(0)


def test_the_schedule_before_spending() -> None:
    """Folds, pairs and what they resolve; the classes that do not train; the limits."""
    config = load_config(
        None, ["gate.design=factorial", "trainer.slow_update=false", "gate.budget=400"]
    )
    data = DataSummary(
        dataset_fingerprint="",
        pools_sha256="",
        baseline_run_id="base",
        n_videos=2,
        n_questions=3,
        classes=(
            ClassCount(
                task_type="Other",
                n_diag=1,
                n_units=1,
                n_val=0,
                n_test=0,
                trainable=False,
                reason="n_val 0 < eval_min_per_class 2",
            ),
        ),
    )
    units = make_units([one for one in _questions() if one.task_type == CLASS])
    told = str(schedule_text(config, data, units, 2.5))
    assert "units to learn from" in told
    assert "to certify" in told
    assert "Other: n_val 0" in told
    assert "nothing is adopted before the end" in told


def _questions() -> tuple[Question, ...]:
    lines = (DEMO / "questions.jsonl").read_bytes().splitlines()
    world = {q.question_id for q in load_world((DEMO / "world.json").read_bytes()).questions}
    found = []
    for line in lines:
        plain = msgspec.json.decode(line)
        if plain["question_id"] in world:
            known = {key: plain[key] for key in plain if key in Question.__struct_fields__}
            found.append(msgspec.convert(known | {"type": "Question"}, Question, strict=False))
    return tuple(found)
