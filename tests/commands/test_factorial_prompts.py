"""What the commands say of edits of the prompts that the factorial gate has tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.commands.export_parts import gather
from actors.commands.html.links import anchor
from actors.factorial_view import factorial_view
from actors.ledger.reader import open_reader
from protocol.factorial_rows import PROMPTS
from protocol.rows import TraceRow
from tests.commands.factorial_house import EDITS, make_factorial
from tests.commands.house import Made, Trm, add_rows, row
from tests.commands.pages import parse


@pytest.fixture
def tested(tmp_path: Path) -> Made:
    """A run that has adopted an edit of the system prompt."""
    return make_factorial(tmp_path, common=True)


def test_blame_names_the_pairs_of_all_classes(trm: Trm, tested: Made) -> None:
    """The line of the system prompt, with its own p, W and L, under the step that proposed it."""
    told = json.loads(trm("blame", "system", "--workspace", tested.path, "--json").out)
    ((key, origin),) = told["edits"].items()
    assert key == "e2/_prompts/s2/adopted/system#0"
    assert (origin["verdict"], origin["tested_as"]) == ("adopted", "e1/_prompts/1")
    assert (origin["epoch"], origin["step"]) == (1, 1)
    lines = [line["text"] for line in told["lines"] if line["origin"] == key]
    assert EDITS[0] in lines


def test_the_view_has_one_course_over_all_pairs(tested: Made) -> None:
    """It ends at the row's own W and L, and its pairs are counted over all classes."""
    with open_reader(tested.path / "run.db") as reader:
        view = factorial_view(reader)
    assert view is not None
    (one,) = (one for one in view.proposed if one.row.task_type == PROMPTS)
    place, balance, discordant = one.path[-1]
    wins, losses = one.row.wins or 0, one.row.losses or 0
    assert (balance, discordant) == (wins - losses, wins + losses)
    assert place == view.total("planned")
    scope = view.scope(one.row)
    assert scope.total("planned") == view.total("planned")
    assert scope.n_gate == sum(own.n_gate for own in view.classes)


def test_the_report_shows_it_with_its_document(trm: Trm, tested: Made) -> None:
    """Its card, its diff, its sentinel, and where the line of the trained document is from."""
    trm("report", tested.path)
    page = parse((tested.path / "report.html").read_text(encoding="utf-8"))
    words = " ".join(page.words.split())
    for told in ("System prompt and tool prompts", "the system prompt", "the pairs of all classes"):
        assert told in words, told
    places = set(page.having("id"))
    assert all(href[1:] in places for href in page.having("href"))
    assert f"#{anchor('e1/_prompts/1')}" in page.having("href")
    assert words.count(EDITS[0]) >= 2  # in its diff, and in the document


def test_the_card_lists_it(trm: Trm, tested: Made, tmp_path: Path) -> None:
    """Under its document."""
    trm("export", tested.path, tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert "| system | e1/_prompts/1 | append | adopted |" in card


def test_what_its_editor_read_is_held_against_its_text(tested: Made) -> None:
    """The rollouts of every class in the epoch that proposed it."""
    observation = "Count twice the man in the yellow coat."
    add_rows(
        tested.path,
        row(
            TraceRow,
            run_key="e1/counting-problem/s1/rollout",
            question_id="002-1",
            step=1,
            tool="view_node",
            arguments="{}",
            observation=observation,
            node_ids="[]",
            flags="[]",
        ),
    )
    exposed = gather(tested.path, "best_hard").exposed
    assert {one.question.question_id: one.evidence for one in exposed}["002-1"] == (observation,)
