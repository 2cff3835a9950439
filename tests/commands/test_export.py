"""``trm export``: plain files with a card, or nothing at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import yaml

from actors.commands.export_files import without_markers
from actors.commands.export_leaks import quotations
from actors.evolver.leak import Exposed
from actors.workspace.manifest import read_manifest, write_manifest
from protocol.dataset import Question
from protocol.rows import SlowRow
from protocol.workspace import SettingChange
from tests.commands.house import Made, Trm, fresh_workspace, make_history


def files_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def question(question_id: str = "q-1", text: str = "?") -> Question:
    return Question(
        question_id=question_id,
        video_id="v",
        task_type="T",
        question=text,
        options=("The man in the yellow coat", "no"),
        answer="A",
    )


def test_the_best_package(trm: Trm, made: Made, tmp_path: Path) -> None:
    """Every document as training has it, and a card beside them; the workspace is only read."""
    before = {path: path.stat().st_mtime_ns for path in made.path.rglob("*")}
    out = tmp_path / "out"
    said = trm("export", made.path, out).out
    assert "4 documents and CARD.md of skills/v4+prompts/v2" in said
    files = files_of(out)
    assert sorted(files) == [
        "CARD.md",
        "prompts/system.md",
        "prompts/tools/view_node.md",
        "skills/_default.md",
        "skills/counting-problem.md",
    ]
    assert files["skills/counting-problem.md"] == made.texts[3]
    front = yaml.safe_load(files["skills/counting-problem.md"].split("---\n")[1])
    assert front == {
        "name": "counting-problem",
        "description": "made up",
        "task_type": "Counting Problem",
    }
    assert {path: path.stat().st_mtime_ns for path in made.path.rglob("*")} == before
    assert [path.name for path in tmp_path.glob(".out*")] == []


def test_the_card(trm: Trm, made: Made, tmp_path: Path) -> None:
    """How it was trained, gains with intervals, every accepted edit, limits, licence."""
    trm("export", made.path, tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert "| val | 0/1 = 0.0% [0%, 79%] | 1/1 = 100.0% [21%, 100%] | +100.0% [" in card
    assert "| 1 won, 0 lost of 1 | 0.5 |" in card
    assert "| test | 0/1" in card
    assert "twin-agent (the embedded simulator)" in card
    assert "profile balanced" in card
    assert "| Counting Problem | e1 s2 | insert_after | accept | 0.04 | +5.0% | 9/2 | 1 |" in card
    assert "| Counting Problem | e1 slow | momentum | kept | - | - | 4/1 |" in card
    assert "| system | e1 slow | append | kept | - | - | 4/1 | 1 |" in card
    assert "Oracle routing" in card
    assert "Not accepted" not in card
    assert "Simulated" in card
    assert "forbids to distribute" in card
    assert "at most 0.4 are expected to change nothing" in card
    for question_id in ("001-1", "001-2", "002-1", "003-1"):
        assert question_id not in card


def test_the_card_of_a_run_whose_level_was_changed(trm: Trm, made: Made, tmp_path: Path) -> None:
    """The level is that of the decisions, whatever is set now; the change is told, and when."""
    change = SettingChange(key="gate.alpha_small", before="0.2", after="0.3", after_epoch=1)
    manifest = read_manifest(made.path)
    write_manifest(made.path, msgspec.structs.replace(manifest, changes=(change,)))
    with closing(sqlite3.connect(made.path / "run.db")) as database, database:
        database.execute("UPDATE decisions SET alpha = 0.2")
        database.execute("UPDATE decisions SET alpha = 0.3 WHERE epoch = 2")
    trm("export", made.path, tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert "| gate | profile balanced, error level of the decisions 0.2 to 0.3 |" in card
    assert "| setting changed | gate.alpha_small: 0.2 -> 0.3 after epoch 1 |" in card
    trm("report", made.path)
    page = (made.path / "report.html").read_text(encoding="utf-8")
    assert "Settings changed on the way. </b>gate.alpha_small: 0.2 -&gt; 0.3 after epoch 1" in page
    assert "error level of the decisions 0.2 to 0.3" in page
    told = trm("status", made.path, expect=1).out
    assert "gate.alpha_small: 0.2 -> 0.3 after epoch 1" in told


def test_another_package(trm: Trm, made: Made, tmp_path: Path) -> None:
    """Named by its versions; an older one has fewer edits, and no gain where it was not run."""
    trm("export", made.path, tmp_path / "out", "--package", "v2/p1")
    files = files_of(tmp_path / "out")
    assert files["skills/counting-problem.md"] == made.texts[1]
    assert "None is claimed" in files["CARD.md"]
    assert "momentum" not in files["CARD.md"].split("## Known limits")[0]
    for bad, code in (("v2", 2), ("latest", 2), ("v9/p1", 2)):
        trm("export", made.path, tmp_path / "no", "--package", bad, expect=code)
    assert not (tmp_path / "no").exists()


def test_the_seeds_own(trm: Trm, tmp_path: Path) -> None:
    """A workspace without a step is the seed, and says so."""
    trm("export", fresh_workspace(tmp_path), tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert "None: the texts are the seed's." in card


def test_plain(trm: Trm, made: Made, tmp_path: Path) -> None:
    """The comments go, what stands between them stays, and the card says so."""
    trm("export", made.path, tmp_path / "out", "--plain")
    files = files_of(tmp_path / "out")
    skill = files["skills/counting-problem.md"]
    assert "<!--" not in skill
    assert "- Read every option.\n" in skill
    assert "Keep counting in order.\n" in skill
    assert "were taken out" in files["CARD.md"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n<!-- APPENDIX_START -->\n- b\n<!-- APPENDIX_END -->\n", "a\n- b\n"),
        ("a\r\n<!-- APPENDIX_START -->\r\n- b\r\n<!-- APPENDIX_END -->", "a\r\n- b\r\n"),
        ("a <!-- MOMENTUM_START -->b<!-- MOMENTUM_END -->\n", "a b\n"),
        ("<!-- another comment -->\n", "<!-- another comment -->\n"),
    ],
)
def test_without_markers(text: str, left: str) -> None:
    """A marker alone on its line takes the line with it."""
    assert without_markers(text) == left


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("As in 001-1, count the masts.", "quotes the question id 001-1"),
        ("Think of 001\u20131.", "quotes the question id 001-1"),
        ("It is the MAN in the yellow coat, mostly.", "quotes an option of 001-1"),
        ("Ask how many red boats lie\nin the harbour at noon!", "quotes the question 001-1"),
        ("He waits; the man in the yellow coat waves to us.", "quotes an option of 001-1"),
        ("For 1001-1 and 001-12 nothing is quoted.", None),
        ("Find the man in yellow.", None),
        ("How many red boats lie there?", None),
    ],
)
def test_what_counts_as_a_quotation(text: str, said: str | None) -> None:
    """Ids, options, long questions, whatever their dashes, case and line breaks."""
    asked = question("001-1", "How many red boats lie in the harbour at noon?")
    found = [one.what for one in quotations({"a": text}, {}, [Exposed(asked, ())])]
    assert found == ([] if said is None else [f"it {said}"])


def test_a_text_that_quotes_the_benchmark(trm: Trm, tmp_path: Path) -> None:
    """Refused, all of it named by file and question at once, nothing written.

    The last is a sentence with the gold answer from what the step's editor had read.
    """
    note = "001-2: a gull lands on the pier before anybody wakes, behind the old mill at the river"
    made = make_history(tmp_path, note=note)
    for options in ([], ["--allow-seed-text"]):
        err = trm("export", made.path, tmp_path / "out", *options, expect=1).err
        assert "skills/counting-problem.md: it quotes the question id 001-2" in err
        assert "skills/counting-problem.md: it quotes an option of 003-1" in err
        assert "skills/counting-problem.md: it quotes the evidence of 001-2" in err
        assert not (tmp_path / "out").exists()
    trm("export", made.path, tmp_path / "out", "--package", "v3/p2")  # before that note


def test_what_the_seed_said_already() -> None:
    """It may be let pass where it is asked for; an id never."""
    exposed = [Exposed(question(), ())]
    seed = "Mind the man in the yellow coat and q-1."
    found = quotations({"a": seed + " More.", "b": seed}, {"a": seed}, exposed)
    told = {(one.document, one.what): one.seeded for one in found}
    assert told == {
        ("a", "it quotes an option of q-1"): True,
        ("a", "it quotes the question id q-1"): False,
        ("b", "it quotes an option of q-1"): False,
        ("b", "it quotes the question id q-1"): False,
    }


def test_the_folder_must_be_new_or_empty(trm: Trm, made: Made, tmp_path: Path) -> None:
    """Nothing of anybody's is overwritten; an empty folder is taken."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()
    assert "is not empty" in trm("export", made.path, full, expect=2).err
    assert [path.name for path in full.iterdir()] == ["mine"]
    assert "is a file" in trm("export", made.path, full / "mine", expect=2).err
    assert "is not there" in trm("export", made.path, tmp_path / "a" / "b", expect=2).err
    empty = tmp_path / "empty"
    empty.mkdir()
    trm("export", made.path, empty)
    assert (empty / "CARD.md").is_file()


def test_what_the_ledger_does_not_know_is_not_published(
    trm: Trm, made: Made, tmp_path: Path
) -> None:
    """A card that cannot say where every line comes from is none."""
    with closing(sqlite3.connect(made.path / "run.db")) as connection, connection:
        connection.execute("DELETE FROM documents")
    assert "does not know" in trm("export", made.path, tmp_path / "out", expect=1).err
    assert not (tmp_path / "out").exists()


def test_without_the_questions(trm: Trm, made: Made, tmp_path: Path) -> None:
    """No leak check, no export."""
    (tmp_path / "questions.jsonl").unlink()
    assert "questions.jsonl" in trm("export", made.path, tmp_path / "out", expect=2).err


def test_a_front_matter_that_is_no_yaml_to_others(
    trm: Trm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quoted for them, given what it lacks, and the card tells both."""
    from tests.workspace import material

    text = "---\ndescription: Counting: how many\ntask_type: {}\n---\n# {}\n\n- Look twice.\n"
    monkeypatch.setattr(
        material, "skill_text", lambda task_type, body="": text.format(task_type, task_type)
    )
    trm("export", fresh_workspace(tmp_path), tmp_path / "out")
    files = files_of(tmp_path / "out")
    front = yaml.safe_load(files["skills/counting-problem.md"].split("---\n")[1])
    assert front == {
        "name": "counting-problem",
        "description": "Counting: how many",
        "task_type": "Counting Problem",
    }
    assert "was given a name" in files["CARD.md"]
    assert "was quoted" in files["CARD.md"]


def test_a_slow_update_without_its_row(trm: Trm, made: Made, tmp_path: Path) -> None:
    """A run under way has none yet: the verdict is unknown, never made up."""
    with closing(sqlite3.connect(made.path / "run.db")) as connection, connection:
        connection.execute(f"DELETE FROM {SlowRow.TABLE}")
    trm("export", made.path, tmp_path / "out")
    card = (tmp_path / "out" / "CARD.md").read_text(encoding="utf-8")
    assert "| momentum | unknown |" in card
    assert "**Not accepted.** The package holds edits that no test let in: e1 slow." in card


def test_many_questions_are_quick() -> None:
    """A benchmark of thousands against a package: seconds, not minutes."""
    many = [
        Exposed(
            msgspec.structs.replace(question(f"q-{n}"), options=(f"word {n} of the song", "x")), ()
        )
        for n in range(3000)
    ]
    texts = {f"d{n}": "A rule of some length about what to look for.\n" * 150 for n in range(16)}
    assert quotations(texts, {}, many) == ()


def test_not_into_the_workspace(trm: Trm, made: Made) -> None:
    """A folder among the versions was taken for one, and the next resumed run fell over it."""
    inside = made.path / "skills" / "v9"
    assert "only read" in trm("export", made.path, inside, expect=2).err
    assert not inside.exists()
