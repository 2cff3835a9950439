"""The tables say what the rows say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from actors.curves import (
    bound_brief,
    bound_lines,
    curves_table,
    epochs_table,
    outcomes_on_test,
    review,
    right_by_question,
)
from actors.gate.package_power import forecast_power, package_power
from actors.ledger import schema
from actors.ledger.reader import open_reader
from actors.summary import (
    OnTest,
    Truth,
    calls_table,
    classes_table,
    packages_text,
    seen_words,
    truth_table,
)
from actors.tables import WIDTH, render
from protocol.dataset import Question
from protocol.documents import Package
from protocol.rows import AnyRow, AttemptRow, DecisionRow, EpochRow, EvaluationRow, SlowRow, StepRow
from tests.ledger.rows import epoch, outcome
from tests.protocol.samples import sample


def _stored(path: Path, *rows: AnyRow) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema.ddl():
            connection.execute(statement)
        for row in rows:
            connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))
    return path


def _row(row_type: type[AnyRow], /, **changes: object) -> AnyRow:
    made = msgspec.structs.replace(sample(row_type), **changes)
    assert isinstance(made, row_type)
    return made


def _question(number: int, task_type: str) -> Question:
    return Question(
        question_id=f"q{number}",
        video_id=f"v{number}",
        task_type=task_type,
        question="?",
        options=("a", "b"),
        answer="A",
    )


def test_accuracy_keeps_missing_in_the_denominator() -> None:
    """A question without a result counts as planned, and is no pair."""
    questions = [_question(number, "Counting Problem") for number in range(4)]
    before = {"q0": True, "q1": False, "q2": False}
    after = {"q0": True, "q1": True, "q2": True, "q3": True}
    tested = OnTest(questions, before, after)
    lines = render([classes_table(None, tested)]).splitlines()
    assert lines[2].split() == ["Counting", "Problem", "1/4", "4/4"]
    assert tested.right == (1, 4)


def test_epochs_and_candidates(tmp_path: Path) -> None:
    """The seed's pass, then the epochs; steps by class and in all."""
    val = {"pool": "val", "planned": 50, "missing": 0}
    path = _stored(
        tmp_path / "run.db",
        _row(EvaluationRow, run_key="e0/val/seed", epoch=0, kind="seed", right=20, **val),
        _row(EvaluationRow, run_key="e1/val/final", epoch=1, kind="final", right=30, **val),
        _row(EvaluationRow, run_key="e1/val/fast", epoch=1, kind="fast", right=49, **val),
        epoch(1),
        *(
            _row(StepRow, run_key=f"e1/c/s{step}", step=step, task_type="C", result=result)
            for step, result in enumerate(["accept", "reject", "no_edits"], start=1)
        ),
    )
    with open_reader(path) as reader:
        assert reader.rows(EpochRow) == [epoch(1)]
        epochs = render([epochs_table(reader)])
        candidates = render([classes_table(reader.rows(StepRow), None)])
    assert "40.0%" in epochs
    assert "60.0%" in epochs
    assert "98.0%" not in epochs
    total = next(line for line in candidates.splitlines() if line.startswith("all"))
    assert total.split() == ["all", "1", "1", "0", "0"]
    assert "3 steps, 1 of them without an edit to test" in candidates


def _pass(key: str, *rights: bool) -> list[AnyRow]:
    results = ["right" if right else "wrong" for right in rights]
    return [outcome(key, f"q{number}", result) for number, result in enumerate(results)]


def test_what_luck_does_not_cover_comes_first() -> None:
    """Two sentences, each for itself; of a narrow card, one phrase."""
    rows = [
        msgspec.structs.replace(epoch(number), sum_alpha=0.2, seed_draws=draws)
        for number, draws in ((1, 10), (2, 1))
    ]
    first, second = bound_lines(rows)
    assert first.startswith("Not covered: 11 tests against the seed's own answers")
    assert second == (
        "Of the edits that other tests accepted at most 0.4 are expected to change nothing."
    )
    assert bound_brief(rows) == "at most 0.4 by luck, 11 tests not covered"
    blind = [msgspec.structs.replace(row, seed_draws=0) for row in rows]
    assert bound_lines(blind) == [
        "Of all accepted edits at most 0.4 are expected to change nothing."
    ]
    assert bound_brief(blind) == "at most 0.4 by luck"


def test_the_slow_update_stands_in_its_epochs_line(tmp_path: Path) -> None:
    """What became of it; what val said of it stands in the report."""
    slow = {"result": "dropped", "momentum": 2, "prompt_edits": 1, "wins": 3, "losses": 9}
    path = _stored(
        tmp_path / "run.db",
        _row(EvaluationRow, run_key="e1/val/final", epoch=1, kind="final", pool="val"),
        _row(SlowRow, epoch=1, **slow),
        epoch(1),
    )
    with open_reader(path) as reader:
        text = render([epochs_table(reader)])
    line = next(line for line in text.splitlines() if line.startswith("1 "))
    assert line.split()[-1] == "dropped"
    assert "slow update, one rewrite" in " ".join(text.split())


def test_holdout_the_curves_and_what_they_point_at(tmp_path: Path) -> None:
    """Row holdout: four curves; the seed's outcomes are its predictions, the best's its first."""
    best = {"skills_version": "v2", "prompts_version": "v1", "missing": 0, "pool": "test"}
    seed = best | {"skills_version": "v1"}
    path = _stored(
        tmp_path / "run.db",
        _row(
            EvaluationRow,
            run_key="e0/test/seed",
            epoch=0,
            kind="seed",
            right=1,
            planned=3,
            outcomes_key="seed",
            **seed,
        ),
        *(
            _row(
                EvaluationRow,
                run_key=f"e{number}/test/{kind}",
                epoch=number,
                kind=kind,
                right=2,
                planned=3,
                outcomes_key="e1/test/final",
                **best,
            )
            for number in (1, 2)
            for kind in ("final", "best_hard", "best_mixed")
        ),
        *_pass("e1/test/final", True, True, False),
    )
    predictions = {"q0": True, "q1": False, "q2": False}
    with open_reader(path) as reader:
        lines = render([curves_table(reader)]).strip().splitlines()
        before = outcomes_on_test(reader, Package(skills="v1", prompts="v1"), predictions)
        after = outcomes_on_test(reader, Package(skills="v2", prompts="v1"), predictions)
        other = outcomes_on_test(reader, Package(skills="v3", prompts="v1"), predictions)
    assert [line.split()[0] for line in lines[2:5]] == ["seed", "1", "2"]
    assert [lines[row].count(part) for row, part in ((2, "33.3%"), (3, "66.7%"))] == [3, 3]
    assert before == predictions
    assert after == {"q0": True, "q1": True, "q2": False}
    assert other is None


def test_the_best_is_reviewed_on_the_pass_that_counted(tmp_path: Path) -> None:
    """A kept slow candidate's outcomes lie under its own pass."""
    val = {"pool": "val", "prompts_version": "v1"}
    path = _stored(
        tmp_path / "run.db",
        _row(
            EvaluationRow,
            run_key="e0/val/seed",
            epoch=0,
            kind="seed",
            skills_version="v1",
            outcomes_key="e0/val/seed",
            **val,
        ),
        _row(
            EvaluationRow,
            run_key="e1/val/final",
            epoch=1,
            kind="final",
            skills_version="v2",
            outcomes_key="e1/val/slow_candidate",
            **val,
        ),
        *_pass("e0/val/seed", False, False, True),
        *_pass("e1/val/slow_candidate", True, True, True),
    )
    with open_reader(path) as reader:
        found = review(
            reader, Package(skills="v1", prompts="v1"), Package(skills="v2", prompts="v1")
        )
    assert (found.wins, found.losses, found.pairs, found.p) == (2, 0, 3, 0.25)


def test_cost_tells_answers_from_hits_and_failures(tmp_path: Path) -> None:
    """Every attempt is counted once, by what became of it."""
    tries = ["ok", "ok", "cached", "timeout"]
    path = _stored(
        tmp_path / "run.db",
        *(
            _row(AttemptRow, call=str(number), outcome=kind, prompt_tokens=10, completion_tokens=1)
            for number, kind in enumerate(tries)
        ),
        outcome("k", "q1", "missing", missing_kind="timeout"),
        outcome("k", "q2"),
    )
    with open_reader(path) as reader:
        text = render([calls_table(reader, restarts=3, seconds=1.5)])
        assert right_by_question(reader, "k") == {"q2": True}
    lines = [line for line in text.splitlines() if line.strip()]
    cells = {line.rsplit("  ", 1)[0].strip(): line.split()[-1] for line in lines}
    assert cells["model calls answered"] == "2"
    assert cells["answered from the cache"] == "1"
    assert "timeout 1" in text
    assert cells["actor restarts"] == "3"


def test_truth_stands_beside_the_verdict() -> None:
    """A useless edit that was accepted is shown as such."""
    row = _row(DecisionRow, run_key="e1/c/s1", verdict="accept")
    assert isinstance(row, DecisionRow)
    text = render([truth_table([Truth(row, 0.0, "useless"), Truth(row, 0.3, "helpful")])])
    accepted = next(line for line in text.splitlines() if line.startswith("accept"))
    assert accepted.split() == ["accept", "1", "1", "0"]
    assert "report below" in text


def test_no_table_is_wider_than_a_terminal(tmp_path: Path) -> None:
    """Eighty columns, whatever a class is called, and whatever is missing."""
    long = "A class with a name that is far longer than any column ever will be"
    val = {"pool": "val", "planned": 1234, "right": 1000, "missing": 17}
    package = {"skills_version": "v123", "prompts_version": "v104"}
    path = _stored(
        tmp_path / "run.db",
        _row(EvaluationRow, run_key="e0/val/seed", epoch=0, kind="seed", **val),
        *(
            _row(EvaluationRow, run_key=f"{n}", epoch=n, kind="final", **val, **package)
            for n in (8, 11)
        ),
        *(
            _row(
                EvaluationRow,
                run_key=f"t{kind}",
                epoch=11,
                kind=kind,
                **val | {"pool": "test"} | package,
            )
            for kind in ("final", "best_hard", "best_mixed")
        ),
        *(_row(SlowRow, epoch=n, result="dropped") for n in (8, 11)),
        *(_row(EpochRow, epoch=n, tests=120, accepted=14, sum_alpha=17.4) for n in (8, 11)),
    )
    questions = [_question(number, long) for number in range(1000)]
    tested = OnTest(questions, {}, {})
    steps = [_row(StepRow, task_type=long, result="accept")]
    with open_reader(path) as reader:
        parts: list[Table | Group | Text] = [
            epochs_table(reader),
            curves_table(reader),
            classes_table(steps, tested),  # type: ignore[arg-type]  # rows of that type
            calls_table(reader, restarts=3, seconds=1.5),
        ]
        text = render(parts)
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "1234 questions" in text
    assert "(17): " not in text
    assert "(17)" in text


def test_what_is_out_of_reach_is_told_with_what_would_bring_it_there() -> None:
    """As many questions as it takes; more of them where not even four times as many suffice."""
    assert seen_words(package_power(120, 38), "test") == (
        "a gain of +9.6% is found with p=.5, +13.3% with p=.8"
    )
    half = seen_words(package_power(90, 20), "test")
    assert "is found with p=.5; no gain, however large, is found with p=.8" in half
    assert "20 of them are wrong; about 124 such questions would bring one within reach" in half
    none = seen_words(package_power(20, 1), "test")
    assert none.startswith("no gain, however large, is found even with p=.5")
    assert none.endswith("more questions would bring one within reach")
    text = render([packages_text([("val", package_power(90, 20))])])
    assert max(map(len, text.splitlines())) <= WIDTH


def test_how_many_are_wrong_is_told_with_how_that_is_known() -> None:
    """An estimate is called one, and why val's own count is none; a count of this run is one."""
    on_val = seen_words(forecast_power(90, 108, 231), "val")
    assert on_val == (
        "a gain of +12.1% is found with p=.5, +16.9% with p=.8, if about 42 of them are wrong (an "
        "estimate: the baseline's share of wrong answers over trainval; its count on val itself is "
        "no forecast, as val was chosen by it)"
    )
    on_test = seen_words(forecast_power(90, 108, 231), "test")
    assert on_test == on_val.partition(";")[0] + ")"
    short = seen_words(forecast_power(20, 1, 20), "val")
    assert "even with p=.5, if about 1 of them are wrong (an estimate" in short
    counted = seen_words(package_power(90, 36, basis="run"), "val")
    assert counted.endswith("+16.5% with p=.8, as 36 of them are wrong in this run")


def test_a_pool_without_questions_sees_nothing() -> None:
    """Not "0 of them are wrong": val holds none of a class that trains."""
    none = "no gain is found: it holds no question"
    assert seen_words(forecast_power(0, 0, 0), "val") == f"{none} of a class that trains"
    assert seen_words(package_power(0, 0), "test") == none
