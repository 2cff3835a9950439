"""Engine prompts: loaded whole, filled whole, and in step with what reads their replies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import actors.diagnoser.actor
import actors.evolver.actor
import actors.rollout.actor
from actors.diagnoser.judge import Amount, Followed, GradedCall, JudgeReply
from actors.diagnoser.waterfall import ReasoningFailure
from actors.evolver.prompt import EditorReply, ProposedEdit
from prompts.reply import Decoded, Unreadable, decode_reply
from prompts.templates import PROMPTS_DIR, Template, load_templates
from protocol.diagnoser import Cause
from protocol.evolver import Op

CONSUMED = (
    *actors.evolver.actor.TEMPLATES,
    *actors.diagnoser.actor.TEMPLATES,
    *actors.rollout.actor.TEMPLATES,
)
REPLIES: dict[str, type[EditorReply] | type[JudgeReply]] = {
    "evolve_skill": EditorReply,
    "diagnose_answer": JudgeReply,
}


def text_of(name: str) -> str:
    return load_templates([name])[name].text


def examples_of(name: str) -> list[str]:
    """The replies that the template shows as its form: the lines that are JSON objects."""
    return [line for line in text_of(name).splitlines() if line.startswith('{"')]


def example_of(name: str) -> str:
    """One of them."""
    return examples_of(name)[-1]


def test_p0_1_all_missing_templates_are_named_at_once(tmp_path: Path) -> None:
    """P0-1: missing or blank files are one error."""
    (tmp_path / "there.md").write_text("x", encoding="utf-8")
    (tmp_path / "blank.md").write_text(" \n", encoding="utf-8")
    with pytest.raises(FileNotFoundError) as error:
        load_templates(["there", "gone", "blank", "lost"], tmp_path)
    for name in ("gone.md", "blank.md", "lost.md"):
        assert name in str(error.value)
    assert "there.md" not in str(error.value)
    assert load_templates(["there"], tmp_path)["there"].text == "x"


@pytest.mark.parametrize("name", CONSUMED)
def test_p0_1_every_consumed_template_exists(name: str) -> None:
    """P0-1."""
    assert text_of(name)


@pytest.mark.parametrize("name", sorted(REPLIES))
def test_p0_1_the_stated_reply_format_is_what_the_parser_reads(name: str) -> None:
    """P0-1: the template's own example decodes, and holds every field that is read."""
    wanted = REPLIES[name]
    nested = {"evolve_skill": ProposedEdit, "diagnose_answer": GradedCall}[name]
    for example in examples_of(name):
        assert isinstance(decode_reply(example, wanted), Decoded)
        assert isinstance(decode_reply(f"Sure:\n```json\n{example}\n```\n", wanted), Decoded)
        for field in (*wanted.__struct_fields__, *nested.__struct_fields__):
            assert f'"{field}"' in example


@pytest.mark.parametrize("name", sorted(REPLIES))
def test_p0_1_a_reply_without_a_required_field_is_invalid(name: str) -> None:
    """P0-1: and so is a cut-off one."""
    example = example_of(name)
    required = "edits" if name == "evolve_skill" else "cause"
    assert isinstance(
        decode_reply(example.replace(f'"{required}"', '"other"'), REPLIES[name]), Unreadable
    )
    for cut in range(1, len(example), 7):
        assert isinstance(decode_reply(example[:cut], REPLIES[name]), Unreadable)


@pytest.mark.parametrize("op", get_args(Op))
def test_p0_1_every_operation_is_explained_and_read(op: str) -> None:
    """P0-1."""
    assert f"\n- `{op}`:" in text_of("evolve_skill")
    said = example_of("evolve_skill").replace("insert_after", op)
    assert isinstance(decode_reply(said, EditorReply), Decoded)


def test_p0_1_no_other_operation_is_explained_or_read() -> None:
    """P0-1."""
    explained = re.findall(r"^- `(\w+)`:", text_of("evolve_skill"), re.MULTILINE)
    assert sorted(explained) == sorted(get_args(Op))
    said = example_of("evolve_skill").replace("insert_after", "rewrite")
    assert isinstance(decode_reply(said, EditorReply), Unreadable)


@pytest.mark.parametrize("word", [*get_args(ReasoningFailure), *get_args(Cause)])
def test_p0_1_every_verdict_of_the_judge_is_explained_and_read(word: str) -> None:
    """P0-1."""
    assert f"   - `{word}`:" in text_of("diagnose_answer")
    field = "cause" if word in get_args(Cause) else "reasoning_failure"
    said = re.sub(rf'"{field}": "\w+"', f'"{field}": "{word}"', example_of("diagnose_answer"))
    assert isinstance(decode_reply(said, JudgeReply), Decoded)
    wrong = said.replace(f'"{field}": "{word}"', f'"{field}": "{word}s"')
    assert isinstance(decode_reply(wrong, JudgeReply), Unreadable)


@pytest.mark.parametrize("field", ["kept", "invented"])
@pytest.mark.parametrize("word", get_args(Amount))
def test_p0_1_every_amount_is_explained_and_read(field: str, word: str) -> None:
    """P0-1: amounts are words of a closed list; numbers and other words are none of them."""
    (explained,) = [
        line for line in text_of("diagnose_answer").splitlines() if f"- `{field}`:" in line
    ]
    assert f'"{word}"' in explained
    said = re.sub(rf'"{field}": "\w+"', f'"{field}": "{word}"', example_of("diagnose_answer"))
    assert isinstance(decode_reply(said, JudgeReply), Decoded)
    for wrong in (f'"{word}s"', "0.5", "null", "true"):
        other = said.replace(f'"{field}": "{word}"', f'"{field}": {wrong}')
        assert isinstance(decode_reply(other, JudgeReply), Unreadable)


@pytest.mark.parametrize("word", get_args(Followed))
def test_p0_1_every_answer_about_the_rule_is_explained_and_read(word: str) -> None:
    """P0-1."""
    (explained,) = [
        line for line in text_of("diagnose_answer").splitlines() if ". `followed`:" in line
    ]
    assert f'"{word}"' in explained
    said = example_of("diagnose_answer").replace('"followed": "no"', f'"followed": "{word}"')
    assert isinstance(decode_reply(said, JudgeReply), Decoded)
    other = said.replace(f'"followed": "{word}"', '"followed": "maybe"')
    assert isinstance(decode_reply(other, JudgeReply), Unreadable)


def test_the_judge_is_told_the_fields_in_the_order_of_its_reply() -> None:
    """The instructions number them as the schema has them: the rule before the cause."""
    numbered = re.findall(r"^\d\. `(\w+)`", text_of("diagnose_answer"), re.MULTILINE)
    assert numbered == list(JudgeReply.__struct_fields__)
    named = re.findall(r'"(\w+)":', re.sub(r"\[\{.*?\}\]", "[]", example_of("diagnose_answer")))
    assert named == numbered


def test_the_judge_sees_both_causes_and_each_agrees_with_its_rule() -> None:
    """After one example, of a lapse, a small model said "lapse" in five of five diagnoses."""
    shown = [msgspec.json.decode(line, type=JudgeReply) for line in examples_of("diagnose_answer")]
    assert {(reply.rule == "none", reply.followed, reply.cause) for reply in shown} == {
        (True, "none", "defect"),
        (False, "no", "lapse"),
    }


def test_the_judge_is_told_what_is_no_reason() -> None:
    """A small model complained that the agent "did not see the video": that is how it works."""
    text = text_of("diagnose_answer")
    assert "reads notes instead of seeing the video is how it is meant to work" in text
    assert "It is never the reason" in text


def test_block_headings_stand_once() -> None:
    """What is read out of a prompt by its line is not said a second time in the instructions."""
    for name, headings in (
        ("evolve_skill", ["Skill:", "Edit budget:", "Cases:", "Rejected before:", "<<<SKILL"]),
        (
            "diagnose_answer",
            [
                *("Correct answer:", "Agent's answer:", "Skill:", "Trajectory:"),
                *("<<<TRAJECTORY", "Calls to grade:"),
            ],
        ),
    ):
        lines = text_of(name).splitlines()
        for heading in headings:
            assert sum(line.startswith(heading) for line in lines) == 1, heading
        assert not [line for line in lines if line.startswith(("Case ", "Question:", "Options:"))]


def test_no_template_without_a_consumer() -> None:
    """Each Markdown file here is asked for by some module of the program."""
    program = (PROMPTS_DIR.parent / "actors").rglob("*.py")
    sources = "".join(path.read_text(encoding="utf-8") for path in program)
    for path in PROMPTS_DIR.glob("*.md"):
        assert f'"{path.stem}"' in sources, path.name


def test_filling() -> None:
    template = Template("t", "{{one}} {single} {{two}} {{one}}")
    assert template.placeholders == {"one", "two"}
    assert template.fill(one="{{two}}", two="2") == "{{two}} {single} 2 {{two}}"
    with pytest.raises(ValueError, match=r"no value for \['two'\], no placeholder for \['tow'\]"):
        template.fill(one="1", tow="2")
