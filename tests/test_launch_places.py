"""A seed or trees that are not there: the error names the command that makes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.config import ROOT, ConfigError
from actors.dataset.errors import PoolsError
from actors.launch import fresh
from actors.places import as_called

DEMO = ROOT / "seeds" / "demo"
ROLES = "roles: [search, judge, evolve]"
HTTP = f"llm.endpoints=[{{name: e, base_url: 'http://h/v1', model: m, {ROLES}}}]"


@pytest.mark.parametrize(
    ("assignment", "remedy"),
    [
        ("data.seed=nowhere", "make a seed with `bin/trm seed DIR --from-scratch CONFIG`"),
        ("data.trees=nowhere", "make a tree per video with `bin/trm tree VIDEO --out DIR`"),
        ("data.trees={folder}", "make each with `bin/trm tree VIDEO --out {folder}`"),
    ],
)
def test_what_is_missing_names_its_command(tmp_path: Path, assignment: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as error:
        fresh(None, [assignment.format(folder=tmp_path)], tmp_path / "run")
    assert remedy.format(folder=tmp_path) in str(error.value)
    installed = as_called(str(error.value), installed=True)
    assert "`trm " in installed
    assert "bin/trm" not in installed


def test_a_seed_of_other_questions_is_one_short_problem(tmp_path: Path) -> None:
    """The likely cause and what to do, not hundreds of ids and two hashes."""
    rows = [json.loads(line) for line in (DEMO / "questions.jsonl").read_text("utf-8").splitlines()]
    mine = tmp_path / "mine.jsonl"
    mine.write_text(
        "\n".join(json.dumps({**row, "question_id": f"my-{row['question_id']}"}) for row in rows),
        encoding="utf-8",
    )
    with pytest.raises(PoolsError) as error:
        fresh(None, [f"data.questions={mine}", HTTP], tmp_path / "run")
    said = str(error.value)
    assert "belongs to other questions: of 360 ids 360 have no question here" in said
    assert "demo-001-1, demo-001-2, demo-001-3 and 357 more;" in said
    assert "make a seed for these questions with `bin/trm seed`" in said
    assert len(said) < 600
    assert len(error.value.problems) == 1
