"""What the commands say of a run under the factorial gate: report, status, watch, blame, export."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from actors.commands.export_parts import gather
from actors.commands.html.balance import needed
from actors.commands.lineage import Hop
from actors.factorial_report import factorial_part
from actors.factorial_view import FactorialView, factorial_view
from actors.gate.factorial.binomial import tail
from actors.ledger.reader import open_reader
from actors.tables import render
from protocol.evolver import Edit, Writing
from protocol.rows import TraceRow
from tests.commands.factorial_house import EDITS, make_factorial
from tests.commands.house import CLASS, Made, Trm, add_rows, row
from tests.commands.pages import HOSTILE, Page, parse


@pytest.fixture
def tested(tmp_path: Path) -> Made:
    """A run that has decided and adopted one of its three edits."""
    return make_factorial(tmp_path)


def view_of(made: Made) -> FactorialView:
    """The run as its rows tell it."""
    with open_reader(made.path / "run.db") as reader:
        view = factorial_view(reader)
    assert view is not None
    return view


def page_of(trm: Trm, made: Made) -> Page:
    """The report."""
    trm("report", made.path)
    return parse((made.path / "report.html").read_text(encoding="utf-8"))


def test_the_view_counts_what_the_gate_counted(tested: Made) -> None:
    """Every path ends at the row's own W and L; drops, void pairs and draws are told."""
    view = view_of(tested)
    assert [one.row.state for one in view.proposed] == ["adopted", "dropped", "rejected"]
    for one in view.edits:
        own = one.row
        assert own.wins is not None
        assert own.losses is not None
        _, balance, discordant = one.path[-1]
        assert (balance, discordant) == (own.wins - own.losses, own.wins + own.losses)
        assert len(one.path) == own.pairs
    dropped = view.proposed[1]
    assert dropped.dropped_after == 1
    assert dropped.discordant > (dropped.row.wins or 0) + (dropped.row.losses or 0)
    assert view.total("void") == 1
    assert (
        view.total("done")
        == view.total("planned")
        == sum(view.in_phase(n, "done") for n in (1, 2, 3))
    )
    assert view.spent == view.planned <= view.budget


@pytest.mark.parametrize(("discordant", "cut"), [(10, 0.0547), (10, 0.05), (30, 0.1), (3, 0.1)])
def test_what_was_needed_to_be_adopted(discordant: int, cut: float) -> None:
    """The smallest W - L whose p is at or below the cut; none where no p can be."""
    goal = needed(discordant, cut)
    wins = [w for w in range(discordant + 1) if tail(discordant, w) <= cut]
    assert goal == (2 * min(wins) - discordant if wins else None)


def test_the_report_of_a_run_that_has_decided(trm: Trm, tested: Made) -> None:
    """Schedule, sentinels, every edit with its verdict, the guarantee; no table of the ladder."""
    page = page_of(trm, tested)
    words = " ".join(page.words.split())
    for told in (
        "The factorial gate", "Schedule, fixed before the first draw", "1 pair is void",
        "They look like coins", "Guaranteed", "expected to change nothing", "Not guaranteed",
        "interactions between edits", "✓ Adopted", "✕ Turned off (dropped)",
        "Not shown to help (rejected)", "two-sided p",
        "turned off after it", "at or below the cut", "is above the cut", *EDITS,
        "1 of 3", "quotes a question", "reason 2",
    ):  # fmt: skip
        assert told in words, told
    for told in ("e-value", "No step is whole yet", "Slow updates", "alpha", "None was made yet"):
        assert told not in words, told
    places = set(page.having("id"))
    assert "factorial" in places
    assert not places & {"edits", "slow"}
    assert all(href[1:] in places for href in page.having("href"))
    assert words.count("born in epoch") == 3
    assert "#c-e1-counting-problem-1" in page.having("href")  # where the document's line is from


def test_the_report_of_a_run_under_way_tells_no_outcome(trm: Trm, tmp_path: Path) -> None:
    """Whoever could stop it by what an edit has won would choose how it ends."""
    made = make_factorial(tmp_path, until=3)
    words = " ".join(page_of(trm, made).words.split())
    assert "Undecided: this run decides once" in words
    assert "Under test (live)" in words
    assert "is shown once the run has decided" in words
    assert "without a better package" not in words  # patience, which this design has not
    for told in ("won", "lost / tied"):
        assert f" {told}," not in words
    assert view_of(made).proposed[1].path == ()


def test_void_claims_come_first(trm: Trm, tmp_path: Path) -> None:
    """In the page's title sentence, in status, and in watch; nothing was adopted."""
    made = make_factorial(tmp_path, sentinel=False)
    assert view_of(made).void
    page = page_of(trm, made)
    words = " ".join(page.words.split())
    assert "This run’s claims are void." in words
    assert words.index("claims are void") < words.index("Accuracy over the epochs")
    assert "They do not look like coins" in words
    assert "no coin" in words
    assert "the sentinels failed: nothing is adopted" in words
    assert "at most 15" not in words
    facts = json.loads(trm("status", made.path, "--json", expect=1).out)["facts"]
    assert next(iter(facts)) == "claims"
    assert "VOID" in facts["claims"]
    assert "CLAIMS ARE VOID" in trm("watch", made.path, "--once").out


def test_status_tells_pairs_and_edits(trm: Trm, tested: Made) -> None:
    """Instead of decisions of a ladder that there is not."""
    facts = json.loads(trm("status", tested.path, "--json", expect=1).out)["facts"]
    assert "decisions" not in facts
    assert "claims" not in facts
    view = view_of(tested)
    assert facts["pairs"] == {
        "done": view.total("done"),
        "planned": view.total("planned"),
        "void": 1,
    }
    assert facts["edits"] == {"adopted": 1, "dropped": 1, "rejected": 1}
    assert facts["sentinels"]["look like coins"] is True


def test_watch_shows_phases_and_pairs(trm: Trm, tested: Made, tmp_path: Path) -> None:
    """A line per class, the epochs with new edits, pairs and void; also of a run under way."""
    shown = trm("watch", tested.path, "--once").out
    assert "1 of 3 edits adopted" in shown
    assert f"{CLASS} certify" in " ".join(shown.split())
    assert "slow update" not in shown
    told = [line for line in shown.splitlines() if str(tested.path) not in line]
    assert max(map(len, told)) <= 80  # a path is never broken
    (tmp_path / "going").mkdir()
    going = trm("watch", make_factorial(tmp_path / "going", until=2).path, "--once").out
    assert "decides after the last one" in going
    assert f"{CLASS} epoch 2" in " ".join(going.split())


def test_blame_names_the_pairs(trm: Trm, tested: Made) -> None:
    """An adopted edit with its own p, W and L, under the step that proposed it."""
    told = json.loads(trm("blame", CLASS, "--workspace", tested.path, "--json").out)
    ((key, origin),) = told["edits"].items()
    own = view_of(tested).proposed[0].row
    assert key == "e2/counting-problem/s2/adopted#0"
    assert (origin["verdict"], origin["tested_as"]) == ("adopted", own.edit_id)
    assert (origin["p"], origin["wins"], origin["losses"]) == (own.p, own.wins, own.losses)
    assert (origin["epoch"], origin["step"]) == (1, 1)
    plain = trm("blame", CLASS, "--workspace", tested.path).out
    assert "adopted, p" in plain
    assert "unknown" not in plain
    assert f"{own.wins} won {own.losses} lost of {own.pairs} pairs" in plain


def test_the_card_says_what_is_guaranteed(trm: Trm, tested: Made, tmp_path: Path) -> None:
    """Not the ladder's bound, which would be nought."""
    trm("export", tested.path, tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert "| e1/counting-problem/1 | append | adopted |" in card
    assert "at most 0.15 is expected to change nothing" in card
    assert "1 of them void" in card
    for told in ("unknown", "at most 0.0", "no test let in", "In sample", "profile balanced"):
        assert told not in card, told


def test_what_the_editor_read_is_held_against_its_text(tested: Made) -> None:
    """The leak check reads the passes of the steps that proposed, not of the adoption."""
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
    read = {one.question.question_id: one.evidence for one in exposed}
    assert read["002-1"] == (observation,)


@pytest.mark.parametrize("op", ["note", "momentum"])
def test_a_line_of_a_region_is_told_as_what_it_is(trm: Trm, tmp_path: Path, op: Writing) -> None:
    """In blame, card and report; with its reason and the questions behind it."""
    made = make_factorial(tmp_path, first=op)
    ((_, origin),) = json.loads(trm("blame", CLASS, "--workspace", made.path, "--json").out)[
        "edits"
    ].items()
    assert (origin["op"], origin["verdict"], origin["evidence"]) == (op, "adopted", ["001-1"])
    trm("export", made.path, tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert f"| e1/counting-problem/1 | {op} | adopted |" in card
    words = " ".join(page_of(trm, made).words.split())
    assert f"{op}Reason: reason 1Evidence: 001-1" in words
    assert f"{'APPENDIX' if op == 'note' else 'MOMENTUM'}_START -->" in words  # in its diff
    told = render([factorial_part(view_of(made), {})])
    assert f"e1/1 ({op})" in told


def test_a_rule_was_made_from_two_passes(tested: Made) -> None:
    """Both are held against an export's texts; an edit was made from its own epoch's alone."""
    own = view_of(tested).proposed[2].row
    hop = Hop(before="", after="", epoch=2, step=2, run_key="k", edits=(), tested={"k": own})
    assert hop.passes == ("e2/counting-problem/s1",)
    rule = Edit(op="momentum", target="", content="x", support=(), reason="")
    own = msgspec.structs.replace(own, edit=msgspec.json.encode(rule).decode())
    hop = msgspec.structs.replace(hop, tested={"k": own})
    assert hop.passes == ("e1/counting-problem/s1", "e2/counting-problem/s1")


def test_diff_and_patch_need_nothing_of_the_design(trm: Trm, tested: Made, tmp_path: Path) -> None:
    """The adopted line is the difference; the edit can be applied by hand."""
    assert f"+{EDITS[0]}" in trm("diff", "v1", "v2", "--workspace", tested.path, expect=1).out
    edits = tmp_path / "edits.json"
    edits.write_text(json.dumps([{"op": "append", "content": EDITS[0]}]), encoding="utf-8")
    document = tested.path / "skills" / "v1" / "counting-problem.md"
    told = json.loads(trm("patch", document, edits, "--out", tmp_path / "new.md").out)
    assert told["applied"] == 1
    assert (tmp_path / "new.md").read_text(encoding="utf-8") == tested.texts[1]


def test_hostile_edits_stay_texts(trm: Trm, tested: Made) -> None:
    """Whatever an edit says and is called is read, never obeyed."""
    evil = "\n".join(HOSTILE)
    own = view_of(tested).proposed[2].row
    edit = {"op": "append", "target": evil, "content": evil, "support": [*HOSTILE], "reason": evil}
    add_rows(
        tested.path,
        msgspec.structs.replace(
            own, edit=json.dumps(edit), edit_id=evil, group_id=evil, proposed_by=evil, position=9
        ),
    )
    page = page_of(trm, tested)
    assert not {name for name, _ in page.elements} & {"iframe", "img", "object", "embed"}
    assert not [key for _, held in page.elements for key in held if key.startswith("on")]
