"""Faults that other trainers of skills have, and that this engine must not.

Each test says in its docstring what went wrong elsewhere, and where. More of them stand beside
what they test: ``test_peer_defect_*`` in this room and in ``tests/prompts``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import actors
from actors.evolver.document import MARKERS, parse
from actors.evolver.merge import merge_edits
from actors.evolver.patch import Limits, apply_edits
from actors.evolver.prompt import EditorReply
from actors.evolver.regions import notes_of, write_notes
from actors.evolver.rejected import edits_of, fingerprint
from prompts.reply import Decoded, Unreadable, decode_reply
from prompts.templates import load_templates
from protocol.documents import Skill
from protocol.evolver import Edit
from protocol.settings import EvolverSettings
from tests.evolver.make import BODY, FRONT, ROOMY, SKILL, edit, rejected, reply

GOOD = edit("append", "", "- Compare start times.", "q-7-1")
TAIL = SKILL[len(FRONT + BODY) :]


def patch(*edits: Edit, text: str = SKILL, limits: Limits = ROOMY) -> str:
    return apply_edits(text, edits, limits, screen=lambda _: None).text


# Documents and edits


def test_a_whole_new_skill_in_place_of_the_old_is_refused() -> None:
    """SkillOpt's rewrite modes replace the whole file: regions and front matter go with it."""
    assert patch(edit("replace", SKILL, "# Order\n- Think.")) == SKILL
    assert patch(edit("replace", SKILL[: len(FRONT + BODY)], "# Order\n- Think.")) == SKILL
    rewritten = patch(edit("replace", BODY, "\n# Order\n- Think.\n"))
    assert rewritten.startswith(FRONT)
    assert rewritten.endswith(TAIL)


def test_a_renamed_skill_would_be_another_classes() -> None:
    """cap-evolve's optimizer wrote to files that were not its own; a skill's name and class are
    not the editor's either."""
    assert patch(edit("replace", "task_type: Order", "task_type: Count")) == SKILL
    assert patch(edit("delete", "name: order\n")) == SKILL


def test_one_edit_of_five_kilobytes_is_not_one_small_step() -> None:
    """SkillOpt's learning rate counts edits, and one of them may double the skill."""
    limits = Limits(edits=4, max_chars=8000, max_growth=0.5)
    report = apply_edits(
        SKILL,
        [edit("append", "", "- rule\n" + "- more words\n" * 400)],
        limits,
        screen=lambda _: None,
    ).reports[0]
    assert report.status == "too_long"


def test_a_skill_does_not_grow_step_by_step_beyond_its_limit() -> None:
    """Skills that only grow got worse on the test (Particular's evolved docs: 3/8 to 1/8)."""
    text = SKILL
    for step in range(60):
        text = patch(
            edit("append", "", f"- rule {step}: " + "word " * 20),
            text=text,
            limits=Limits(edits=4, max_chars=2000, max_growth=0.5),
        )
    assert 1800 < len(parse(text).body_text) <= 2000


def test_a_missing_search_text_is_reported_with_the_edit() -> None:
    """openevolve skips a block that it does not find, without a word, and takes the first hit of
    one that it finds twice."""
    edits = [edit("replace", "- Look thrice.", "- x"), edit("replace", "- Look twice", "- x")]
    patched = apply_edits(SKILL, edits, ROOMY, screen=lambda _: None)
    assert [(report.edit, report.status) for report in patched.reports] == [
        (edits[0], "no_match"),
        (edits[1], "ambiguous"),
    ]


def test_an_evolved_file_that_is_byte_for_byte_the_old_one_is_no_step() -> None:
    """hermes and cap-evolve judged candidates that were identical to the seed."""
    same = edit("replace", "- None yet.", "- None yet.")
    for text in (SKILL, SKILL.replace("\n", "\r\n")):
        patched = apply_edits(text, [same], ROOMY, screen=lambda _: None)
        assert [report.status for report in patched.reports] == ["noop"]
        assert Skill(task_type="Order", text=patched.text).hash == (
            Skill(task_type="Order", text=text).hash
        )


def test_text_of_every_script_comes_back_as_utf_8() -> None:
    """Files written in the platform's encoding (cp1252) ended runs half way on Windows."""
    rule = "- \u5148\u306b\u5b57\u5e55\u3092\u8aad\u3080 \u2014 \u201cna\u00efve\u201d \U0001f3ac"
    text = patch(edit("append", "", rule))
    assert rule in text.encode("utf-8").decode("utf-8")
    assert patch(edit("append", "", rule), text=text) == text


# Regions


def test_stray_copies_of_a_region_are_told_and_not_tidied_away() -> None:
    """SkillOpt strips every copy of its region and writes a new one: what stood there is lost."""
    opening, closing = MARKERS["momentum"]
    doubled = SKILL + f"{opening}\nmore\n{closing}\n"
    patched = apply_edits(doubled, [GOOD], ROOMY, screen=lambda _: None)
    assert patched.text == doubled
    assert "not one pair" in patched.reports[0].detail
    noted = write_notes(doubled, ["Look."], 9, lambda _: None)
    assert (noted.text, len(noted.refused)) == (doubled, 1)


def test_a_note_that_is_there_already_is_not_written_again() -> None:
    """Append-only notes without a memory repeat themselves every epoch."""
    text = SKILL
    for _ in range(3):
        text = write_notes(text, ["Read EVERY option!", "Check the clock."], 9, lambda _: None).text
    assert notes_of(text) == ("Read every option.", "Check the clock.")


# Replies


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```json\n" + reply([GOOD]) + "\n```", id="fenced"),
        pytest.param('Such as {"edits": []}. Here:\n' + reply([GOOD]), id="a smaller one before"),
        pytest.param(reply([GOOD]) + '\nThe form was {"edits": []}.', id="a smaller one behind"),
        pytest.param('{"note": "{"} ' + reply([GOOD]), id="a brace in a string"),
    ],
)
def test_the_real_object_is_found(text: str) -> None:
    """SkillOpt's reader takes the first object of the prose, or none at all."""
    decoded = decode_reply(text, EditorReply)
    assert isinstance(decoded, Decoded)
    assert [item.edit for item in decoded.value.edits] == [GOOD]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + msgspec.json.encode({"op": "append"}).decode() + "]", id="an array"),
        pytest.param("{'edits': [{'op': 'append', 'target': ''}]}", id="Python for JSON"),
        pytest.param("{edits: none}", id="pseudo-JSON"),
        pytest.param(reply([GOOD]).replace("append", "prepend"), id="an unknown operation"),
        pytest.param(reply([GOOD]).replace('"target":"",', ""), id="a key lacking"),
        pytest.param(reply([GOOD]).replace('"- Compare start times."', "null"), id="null"),
        pytest.param(reply([GOOD]).replace('["q-7-1"]', '"q-7-1"'), id="a text for a list"),
        pytest.param(FRONT + BODY, id="the whole skill instead of edits"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_no_reply_never_becomes_edits(text: str) -> None:
    """An array's inner object was taken (SkillOpt); the raw text of a reply became the prompt when
    nothing could be read (GEPA); a missing tag ended the run (TextGrad)."""
    assert isinstance(decode_reply(text, EditorReply), Unreadable)


def test_every_cut_of_a_reply_is_unreadable() -> None:
    """GEPA adopted reflections that were cut off at the length limit."""
    whole = reply([GOOD, edit("delete", "- Look twice.")], ["Look."])
    for size in range(len(whole)):
        assert isinstance(decode_reply(whole[:size], EditorReply), Unreadable), whole[:size]


# Proposals


def test_every_prompt_that_is_lacking_is_named(tmp_path: Path) -> None:
    """P0-1: prompts that were not in SkillOpt's wheel were missed when they were first needed."""
    with pytest.raises(FileNotFoundError, match=r"(?s)no_such_one.*no_such_two"):
        load_templates(["evolve_skill", "no_such_one", "no_such_two"])


def test_support_that_a_model_invents_ranks_nothing() -> None:
    """SkillOpt ranks by a support_count that the model itself writes down."""
    loud = edit("append", "", "- loud", *(f"made-up-{n}" for n in range(50)))
    assert [item.content for item in merge_edits([loud, GOOD], {"q-7-1"}, 1.0)] == [
        GOOD.content,
        "- loud",
    ]


def test_rejected_edits_are_known_again_after_a_restart() -> None:
    """SkillOpt's buffer of rejected edits lives in memory, for one epoch; GEPA has none and
    proposes the same idea again."""
    row = rejected([GOOD])
    stored = msgspec.json.decode(msgspec.json.encode(row), type=type(row))
    again = edit("append", "ignored", "-  compare start\n TIMES", "q-9-9")
    assert fingerprint(again) in {fingerprint(item) for item in edits_of(stored)}


def test_every_setting_of_the_editor_does_something() -> None:
    """Settings that nothing reads (SkillOpt's max_analyst_rounds and test_fraction)."""
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for path in Path(actors.__path__[0]).rglob("*.py")
        if path.name != "config.py"
    )
    idle = [name for name in EvolverSettings.__struct_fields__ if f".{name}" not in sources]
    assert idle == []
