"""What the judge is asked, and what its reply means."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from actors.diagnoser.judge import Brief, JudgeReply, brief_of, judge
from prompts.reply import reply_schema
from prompts.templates import load_templates
from prompts.trajectory import read_steps
from protocol.diagnoser import Cause, Diagnosis
from protocol.documents import Skill
from protocol.llm import Chat, ChatAnswer
from protocol.rows import TraceRow
from tests.diagnoser.make import QUESTION, REQUEST, RULE, answer, call, submit, verdict

TEMPLATE = load_templates(["diagnose_answer"])["diagnose_answer"]
LOOKS = (
    call(1, "search_similar", '{"query": "boat"}', '["v1_L2_004"]', observation="One hit."),
    call(
        2,
        "view_node",
        '{"node_id": "v1_L1_000"}',
        '["v1_L1_000", "v1_L2_003"]',
        observation="Children (1): v1_L2_003",
    ),
    submit(3),
)
BOTH_READ = [{"step": step, "kept": "all", "invented": "nothing"} for step in (1, 2)]


def brief(rows: Sequence[TraceRow] = LOOKS, max_trace_chars: int = 2000) -> Brief:
    return brief_of(TEMPLATE, REQUEST, read_steps(rows), max_trace_chars=max_trace_chars)


async def judged(*script: ChatAnswer, rows: Sequence[TraceRow] = LOOKS) -> Diagnosis:
    """The diagnosis by a judge who says this, one reply after the other."""
    waiting = list(script)

    async def chat(_: Chat) -> ChatAnswer:
        return waiting.pop(0)

    steps = read_steps(rows)
    found = await judge(chat, TEMPLATE, REQUEST, steps, brief(rows))
    assert waiting == []
    return found


# -- what is asked ----------------------------------------------------------------------


def test_calls_with_ground_truth_are_to_be_graded() -> None:
    """Views that showed a node and searches that had hits; no refusal, no picture, no answer."""
    rows = (
        *LOOKS[:2],
        call(3, "view_node", '{"node_id": "v1_L9_000"}', observation="There is no such node."),
        call(4, "search_similar", '{"query": "x"}', observation="No node matches."),
        call(5, "observe_frame", "{}", '["v1_L3_001"]', observation="1 key frame"),
        call(6, None, raw="?"),
        submit(7),
    )
    assert brief(rows).graded == (1, 2)
    assert brief(rows).prompt.endswith("\nCalls to grade: 1, 2\n")
    assert brief((submit(1),)).graded == ()
    assert brief((submit(1),)).prompt.endswith("\nCalls to grade: none\n")


def test_a_call_whose_text_was_cut_is_not_graded() -> None:
    """The ground truth must be whole, or what stands in the gap would look invented."""
    long = call(1, "search_similar", "{}", '["v1_L2_004"]', observation="Rain. " * 400)
    assert brief((long, *LOOKS[1:])).graded == (2,)
    assert brief((long, *LOOKS[1:]), max_trace_chars=4000).graded == (1, 2)


def test_the_number_of_graded_calls_is_bounded() -> None:
    """The last sixteen of a long trajectory."""
    rows = [call(n, "search_similar", "{}", '["v1_L2_004"]') for n in range(1, 31)]
    assert brief([*rows, submit(31)], 9000).graded == tuple(range(15, 31))


def test_the_schema_has_the_cause_behind_what_it_follows_from() -> None:
    """A model that is held to the schema writes what went wrong, the rule, and then the cause."""
    fields = list(msgspec.json.decode(reply_schema(JudgeReply))["properties"])
    order = ("calls", "evidence_sufficient", "finding", "rule", "followed", "cause")
    assert [field for field in fields if field in order] == list(order)
    assert fields[-1] == "cause"


def test_a_model_that_is_held_to_the_schema_cannot_make_up_a_rule_or_a_step() -> None:
    """Both are closed lists; a small model that was free to copy invented them."""
    schema = msgspec.json.decode(brief().schema)
    assert schema["properties"]["rule"] == {"enum": ["none", RULE]}
    assert schema["$defs"]["GradedCall"]["properties"]["step"] == {"enum": [1, 2]}
    assert list(schema["properties"]) == list(JudgeReply.__struct_fields__)
    none = msgspec.json.decode(brief((submit(1),)).schema)
    assert none["$defs"]["GradedCall"]["properties"]["step"] == {"type": "integer"}


def test_lists_that_are_too_long_for_a_schema_are_left_out() -> None:
    """Servers bound them; the reply is checked all the same."""
    for lines in (["x" * 200] * 3, ["y" * 70 + str(n) for n in range(180)], list("ab" * 150)):
        text = "\n".join(f"- {n} {line}" for n, line in enumerate(lines))
        request = msgspec.structs.replace(REQUEST, skill=Skill(task_type="Order", text=text))
        found = brief_of(TEMPLATE, request, read_steps(LOOKS), max_trace_chars=2000)
        rule = msgspec.json.decode(found.schema)["properties"]["rule"]
        assert ("enum" in rule) == (len(lines) == 3)


@pytest.mark.anyio
async def test_the_narrow_schema_goes_to_the_judge() -> None:
    asked: list[Chat] = []

    async def chat(request: Chat) -> ChatAnswer:
        asked.append(request)
        return answer(verdict(calls=BOTH_READ))

    await judge(chat, TEMPLATE, REQUEST, read_steps(LOOKS), brief())
    assert asked[0].json_schema == brief().schema


# -- what a reply means -----------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("named", "kept", "error_type"),
    [
        (["v1_L2_003"], ("v1_L2_003",), "search_failure"),
        (["v1_L1_000", "v1_L2_004"], (), "reasoning_failure"),
        (["v1_L2_099", "the harbour"], (), "reasoning_failure"),
        (["v1_L2_003", "v1_L2_003", "v1_L1_000"], ("v1_L2_003",), "search_failure"),
    ],
    ids=["listed, never read", "opened, or a hit", "made up", "some of them"],
)
async def test_missed_nodes_were_named_and_never_read(
    named: list[str], kept: tuple[str, ...], error_type: str
) -> None:
    found = await judged(answer(verdict(calls=BOTH_READ, missed_nodes=named)))
    assert (found.missed_nodes, found.error_type) == (kept, error_type)


@pytest.mark.anyio
async def test_grades_of_calls_that_were_not_asked_for_are_dropped() -> None:
    """And of two grades of one call the first stands."""
    said = [
        {"step": 2, "kept": "most", "invented": "little"},
        {"step": 2, "kept": "nothing", "invented": "all"},
        {"step": 3, "kept": "nothing", "invented": "all"},
    ]
    found = await judged(answer(verdict(calls=said)))
    assert [(g.step, g.completeness, g.hallucination) for g in found.grades] == [(2, 0.75, 0.25)]
    assert found.error_type == "reasoning_failure"


@pytest.mark.anyio
async def test_several_reasoning_failures_are_ranked() -> None:
    said = verdict(calls=BOTH_READ, reasoning_failure=["logic_error", "evidence_misread"])
    assert (await judged(answer(said))).subtype == "evidence_misread"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rule", "followed", "cause"),
    [
        ("none", "none", "defect"),
        ("None.", "unclear", "uncertain"),
        ("none", "none", "uncertain"),
        (RULE, "no", "lapse"),
        (RULE, "yes", "defect"),
        (RULE, "unclear", "uncertain"),
        (RULE, "no", "uncertain"),
        ("- look TWICE!", "no", "lapse"),
    ],
)
async def test_causes_that_agree_with_the_rule(rule: str, followed: str, cause: Cause) -> None:
    said = verdict(calls=BOTH_READ, rule=rule, followed=followed, cause=cause)
    found = await judged(answer(said))
    assert (found.cause, found.degraded) == (cause, False)
    assert found.rule == ("" if "none" in rule.casefold() else RULE)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rule", "followed", "cause", "problem"),
    [
        ("none", "none", "lapse", "without a rule it is no lapse"),
        (RULE, "no", "defect", '`cause` is "lapse" and not "defect"'),
        (RULE, "yes", "lapse", '`cause` is "defect" and not "lapse"'),
        (RULE, "unclear", "defect", '`cause` is "uncertain" and not "defect"'),
        ("Always search the subtitles first.", "no", "lapse", "`rule` is not in the skill"),
    ],
)
async def test_a_reply_that_contradicts_itself_is_asked_again(
    rule: str, followed: str, cause: Cause, problem: str
) -> None:
    """One re-ask says what does not fit; a second contradiction is degraded, never a defect."""
    said = answer(verdict(calls=BOTH_READ, rule=rule, followed=followed, cause=cause))
    mended = await judged(said, answer(verdict(calls=BOTH_READ)))
    assert (mended.cause, mended.degraded) == ("defect", False)
    found = await judged(said, said)
    assert (found.cause, found.degraded, found.error_type) == ("uncertain", True, "mixed")
    assert problem in found.finding
    assert (found.rule, found.grades) == ("", ())


@pytest.mark.anyio
async def test_the_finding_does_not_carry_the_answer_on() -> None:
    said = verdict(calls=BOTH_READ, finding="The correct answer is B: a boat arrives. Too early.")
    finding = (await judged(answer(said))).finding
    assert "B" not in finding
    assert "boat" not in finding
    assert finding.endswith("Too early.")


@pytest.mark.anyio
async def test_a_finding_is_bounded_and_clean_where_it_was_cut() -> None:
    """A word that is cut to a single letter is no letter of an option."""
    for pad in range(40):
        said = verdict(calls=BOTH_READ, finding=f"{'-' * pad}{'Bright Boats Bumped. ' * 60}")
        finding = (await judged(answer(said))).finding
        assert len(finding) < 650
        assert " B " not in finding
        assert "left out" in finding


@pytest.mark.anyio
async def test_an_unknown_step_in_the_middle_of_nothing() -> None:
    """An answer without a look is no search, whatever the judge says of extraction."""
    said = verdict(calls=[{"step": 1, "kept": "nothing", "invented": "all"}])
    found = await judged(answer(said), rows=(submit(1),))
    assert (found.error_type, found.grades) == ("no_search", ())


def test_the_gold_letter_stands_on_its_own_line_only() -> None:
    """The judge is told once; question and trajectory are as the agent had them."""
    prompt = brief().prompt
    assert prompt.count(f"Correct answer: {QUESTION.answer}\n") == 1
    assert "Agent's answer: C\n" in prompt
