"""What is told of the edits that were tested together."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.config import ROOT, load_config
from actors.dataset.units import make_units
from actors.estimate import Passes, factorial_estimate
from actors.factorial_report import (
    factorial_epochs,
    factorial_part,
    factorial_truth,
    schedule_text,
    true_gains,
)
from actors.factorial_view import EditView, FactorialView, factorial_view, void_words
from actors.ledger.reader import open_reader
from actors.ledger.sqlite import Database
from actors.system import read_seed_package
from actors.tables import WIDTH, render
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
SLUG = "counting-problem"
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


def view_with(run: FactorialRunRow | None, *rows: FactorialEditRow) -> FactorialView:
    """A run of which only the edits matter."""
    edits = tuple(
        EditView(row=row, edit=msgspec.json.decode(row.edit, type=Edit) if row.edit else None)
        for row in rows
    )
    return FactorialView(n_epochs=1, budget=0, planned=0, spent=0, classes=(), edits=edits, run=run)


SENTINEL = edit_row(
    f"{SLUG}/sentinel", 0, "", edit="", sentinel=True, state="live", wins=12, losses=9, p=0.332
)
EDITS = (
    edit_row(
        f"e1/{SLUG}/1", 1, "- Count twice, and then " + "again " * 20, group_id=f"e1/{SLUG}/1"
    ),
    edit_row(f"e1/{SLUG}/2", 2, "- b", state="dropped", wins=0, losses=3, seen=8, p=1.0),
    edit_row(f"e1/{SLUG}/3", 3, "- c", state="rejected", p=0.4, group_id=f"e1/{SLUG}/1"),
    SENTINEL,
)
GAINS = {f"e1/{SLUG}/1": 0.1, f"e1/{SLUG}/2": -0.1, f"e1/{SLUG}/3": 0.0}


def test_every_edit_stands_on_a_line() -> None:
    """By class: state, counts, p, interval, the truth; nothing is wider than a terminal."""
    told = render([factorial_part(view_with(RUN, *EDITS), GAINS)])
    lines = told.splitlines()
    assert max(map(len, lines)) <= WIDTH
    rows = [line.split() for line in lines[lines.index(CLASS) + 2 :]]
    assert rows[0][:6] == ["e1/1", "adopted", "9", "1", "20", "0.011"]
    assert rows[0][-2:] == ["helpful", "+10.0"]
    assert rows[1][:6] == ["e1/2", "dropped", "0", "3", "20", "1"]
    assert rows[1][-2:] == ["harmful", "-10.0"]
    assert rows[3][0] == "sentinel"
    assert "One group: e1/1, e1/3." in told
    words = " ".join(told.split())
    assert "1 of 2 edits adopted: q 0.15, cap 0.1, tau 0.09, cut 0.01" in words
    assert "they look like coins" in words
    assert "(T7)" not in words
    assert "small effects (2-8 points)" in words
    for term in ("tau:", "cut:", "the cap.", "q:", "One group:", "docs/gate-training.md#"):
        assert term in words, term


def test_what_was_adopted_is_read_first() -> None:
    """The first line of its text, cut to the width, before every number."""
    lines = render([factorial_part(view_with(RUN, *EDITS), {})]).splitlines()
    adopted = lines.index("Adopted:")
    assert lines[adopted + 1].startswith(f"  e1/{SLUG}/1: - Count twice, and then again")
    assert len(lines[adopted + 1]) == WIDTH
    assert lines.index(CLASS) > adopted


def test_a_sentinels_p_is_two_sided() -> None:
    """As the page has it: how uneven W and L are, not how many were won."""
    told = render([factorial_part(view_with(RUN, *EDITS), {})])
    row = next(line.split() for line in told.splitlines() if line.startswith("sentinel"))
    assert row[1:5] == ["12", "9", "20", "0.66"]
    assert "0.33" not in told
    assert "(two-sided)" in told


def test_failing_sentinels_are_shouted() -> None:
    """The claims are void, in words that cannot be passed over; without a truth, none is shown."""
    run = msgspec.structs.replace(RUN, ok=False, adopted=0, cut=None, sentinel_p=1e-5)
    row = edit_row(f"e1/{SLUG}/1", 1, "- a", state="rejected")
    told = " ".join(render([factorial_part(view_with(run, row), {})]).split())
    assert "CLAIMS ARE VOID" in void_words(run)
    assert void_words(RUN) == ""
    assert "THEY DO NOT LOOK LIKE COINS" in told
    assert "no p is small enough" in told
    assert "No claim stands" in told
    assert "Guarantee" not in told
    assert "truly" not in told


def test_verdicts_against_the_truth_are_counted() -> None:
    """As for the ladder; without a truth, or before the decision, there is nothing to count."""
    told = render(list(factorial_truth(view_with(RUN, *EDITS), GAINS)))
    rows = [line.split() for line in told.splitlines()]
    assert rows[1] == ["verdict", "helpful", "useless", "harmful"]
    assert rows[2:5] == [
        ["adopted", "1", "0", "0"],
        ["rejected", "0", "1", "0"],
        ["dropped", "0", "0", "1"],
    ]
    assert factorial_truth(view_with(RUN, *EDITS), {}) == []
    assert factorial_truth(view_with(None, *EDITS), GAINS) == []


def test_the_epochs_tell_pairs_instead_of_a_ladder(tmp_path: Path) -> None:
    """New edits, pairs and drops of every epoch; the pairs that certify on a line of their own."""
    made = make_factorial(tmp_path)
    with open_reader(made.path / "run.db") as reader:
        view = factorial_view(reader)
        assert view is not None
        told = render([factorial_epochs(reader, view)])
    assert max(map(len, told.splitlines())) <= WIDTH
    rows = {line.split()[0]: line.split() for line in told.splitlines() if line}
    planned = [view.in_phase(phase, "planned") for phase in (1, 2, 3)]
    assert rows["1"][-4:] == ["2", f"{planned[0]}/{planned[0]}", "1", "1"]
    assert rows["2"][-4:] == ["1", f"{planned[1]}/{planned[1]}", "0", "0"]
    assert rows["certify"] == ["certify", f"{planned[2]}/{planned[2]}", "0", "1"]


def test_a_run_under_way_has_no_numbers() -> None:
    """Nothing of W, L or p is there to be told before the decision."""
    row = edit_row(f"e1/{SLUG}/1", 1, "- a", state="live", wins=None, losses=None, p=None)
    told = render([factorial_part(view_with(None, row), {})])
    line = next(line for line in told.splitlines() if line.startswith("e1/1"))
    assert line.split() == ["e1/1", "live", *"-----"]
    assert "not decided yet" in told


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
    passes = Passes(val=10, test=20, test_seed=False, wrong=0.5)
    text = str(schedule_text(config, data, units, 2.5, passes))
    assert max(map(len, text.splitlines())) <= WIDTH
    told = " ".join(text.split())
    assert "units to learn from" in told
    assert "to certify" in told
    assert "Not trained: Other: n_val 0" in told
    assert "nothing is adopted before the end" in told
    assert told.count("calls in all") == 1


def test_what_a_run_takes_in_all() -> None:
    """Passes, judge and editor beside the schedule; a run of the demo made 5,150 calls."""
    demo = Passes(val=90, test=120, test_seed=False, wrong=0.45)
    rollouts, calls = factorial_estimate(
        demo, drawn=1721, learned=111, proposals=18, calls_per_rollout=2.5
    )
    assert rollouts == 1721 + 2 * 90 + 120
    assert calls == pytest.approx(5150, rel=0.02)
    again = msgspec.structs.replace(demo, test_seed=True)
    more, _ = factorial_estimate(
        again, drawn=1721, learned=111, proposals=18, calls_per_rollout=2.5
    )
    assert more == rollouts + 120


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
