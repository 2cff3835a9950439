"""The judge holds an answer against the skill that the agent had before its eyes."""

from __future__ import annotations

import pytest

from actors.diagnoser.followed import shown_skill
from actors.diagnoser.judge import brief_of, judge
from prompts.templates import load_templates
from prompts.trajectory import read_steps
from protocol.diagnoser import Diagnosis
from protocol.llm import Chat, ChatAnswer
from protocol.rows import TraceRow
from tests.diagnoser.make import REQUEST, RULE, answer, call, submit, verdict

TEMPLATE = load_templates(["diagnose_answer"])["diagnose_answer"]
OWN_BODY = f"- {RULE}\n"
OTHER_BODY = "# Counting\n\n- Count every lamp from left to right.\n"


def read(step: int, body: str, flags: str = "[]") -> TraceRow:
    return call(step, "read_skill", '{"name": "x"}', observation=body, flags=flags)


async def judged(rows: tuple[TraceRow, ...], *script: ChatAnswer) -> tuple[Diagnosis, str]:
    """The diagnosis of an agent that chose its skill, and what the judge was sent first."""
    waiting, asked = list(script), []

    async def chat(request: Chat) -> ChatAnswer:
        asked.append(str(request.messages[0].content))
        return waiting.pop(0)

    steps = read_steps(rows)
    brief = brief_of(TEMPLATE, REQUEST, steps, max_trace_chars=2000, manual=True)
    found = await judge(chat, TEMPLATE, REQUEST, steps, brief)
    assert waiting == []
    return found, asked[0].split("<<<SKILL\n")[1].split("\nSKILL>>>")[0]


@pytest.mark.parametrize(
    ("rows", "shown", "own"),
    [
        ((read(1, OWN_BODY), submit(2)), REQUEST.skill.text, True),
        ((read(1, OTHER_BODY), submit(2)), OTHER_BODY.strip(), False),
        ((read(1, OTHER_BODY), read(2, OWN_BODY), submit(3)), REQUEST.skill.text, True),
        ((read(1, OWN_BODY), read(2, OTHER_BODY), submit(3)), OTHER_BODY.strip(), False),
        ((read(1, OWN_BODY), read(2, "No such.", '["refused"]')), REQUEST.skill.text, True),
        ((read(1, "Not run.", '["forced"]'), submit(2)), "(The agent read no skill.)", False),
        ((submit(1),), "(The agent read no skill.)", False),
    ],
    ids=["its own", "another", "its own at last", "another at last", "refused", "not run", "none"],
)
def test_the_skill_that_was_read_is_shown(
    rows: tuple[TraceRow, ...], shown: str, own: bool
) -> None:
    found = shown_skill(REQUEST.skill.text, read_steps(rows), manual=True)
    assert (found.text, found.own) == (shown, own)
    if shown.startswith("("):
        assert found.rules == ""


def test_where_the_prompt_holds_the_skill_it_is_the_class_s() -> None:
    found = shown_skill(REQUEST.skill.text, read_steps((submit(1),)), manual=False)
    assert (found.text, found.own) == (REQUEST.skill.text, True)


@pytest.mark.anyio
async def test_another_skill_is_shown_and_its_verdict_is_no_evidence_about_this_one() -> None:
    """Neither a defect nor a lapse of the class's skill (row P1-5: it goes the lapse way)."""
    rule = "Count every lamp from left to right."
    said = verdict(rule=rule, followed="no", cause="lapse", calls=[])
    found, shown = await judged((read(1, OTHER_BODY), submit(2)), answer(said))
    assert shown == OTHER_BODY.strip()
    assert (found.cause, found.degraded, found.rule) == ("uncertain", False, "")
    assert found.finding.startswith("The agent had not read the skill of this class. ")


@pytest.mark.anyio
async def test_a_rule_that_the_agent_never_saw_cannot_be_quoted() -> None:
    """The judge is told so and asked once more."""
    wrong = verdict(rule=RULE, followed="no", cause="lapse", calls=[])
    right = verdict(rule="none", followed="none", cause="defect", calls=[])
    found, shown = await judged((submit(1),), answer(wrong), answer(right))
    assert shown == "(The agent read no skill.)"
    assert (found.cause, found.rule) == ("uncertain", "")


@pytest.mark.anyio
async def test_its_own_skill_is_judged_as_ever() -> None:
    said = verdict(rule=RULE, followed="no", cause="lapse", calls=[])
    found, _ = await judged((read(1, OWN_BODY), submit(2)), answer(said))
    assert (found.cause, found.rule) == ("lapse", RULE)
