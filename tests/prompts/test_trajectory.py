"""Stored steps as text (P0-2), and questions in words."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.question import labelled, question_block
from prompts.trajectory import (
    EmptyTrajectory,
    Submission,
    clip,
    neutral,
    quoted,
    read_steps,
    render_steps,
    submission_of,
)
from protocol.rows import TraceRow
from tests.diagnoser.make import QUESTION

ROW = TraceRow(
    run_key="e1/a/s1",
    question_id="q1",
    step=1,
    thought="Look.",
    tool="view_node",
    arguments='{"node_id": "v_L1_000"}',
    observation="A card.",
    raw="{}",
    node_ids='["v_L1_000", "v_L2_001"]',
    prompt_tokens=3,
    completion_tokens=2,
    seconds=0.5,
)


def row(step: int, **changes: str | int | None) -> TraceRow:
    return msgspec.structs.replace(ROW, step=step, **changes)


def test_p0_2_rows_become_steps_in_order() -> None:
    """P0-2: nothing of a stored step is lost."""
    first, second = read_steps([row(2), row(1, thought="Begin.")])
    assert (first.index, first.thought, second.index) == (1, "Begin.", 2)
    assert second.node_ids == ("v_L1_000", "v_L2_001")
    assert (second.observation, second.raw, second.prompt_tokens) == ("A card.", "{}", 3)
    marked = row(1, notice="Step 3 of 8.", flags='["repeated", "forced"]', dropped=2)
    (third,) = read_steps([marked])
    assert (third.notice, third.flags, third.dropped) == ("Step 3 of 8.", ("repeated", "forced"), 2)


def test_p0_2_no_rows_are_an_error() -> None:
    """P0-2: an answered question has steps."""
    with pytest.raises(EmptyTrajectory):
        read_steps([])


def test_p0_2_rows_of_several_rollouts_are_an_error() -> None:
    """P0-2."""
    with pytest.raises(ValueError, match="several rollouts"):
        read_steps([row(1), row(2, run_key="e2/a/s1")])
    with pytest.raises(msgspec.DecodeError):
        read_steps([row(1, node_ids="{")])


def test_a_rendered_trajectory() -> None:
    steps = read_steps(
        [row(1), row(2, tool=None, raw="Well >>>", observation="Your reply could not be read")]
    )
    assert render_steps(steps, 1000) == (
        'Step 1\nThought: Look.\nCall: view_node {"node_id": "v_L1_000"}\nObservation: A card.\n'
        "Step 2\nUnreadable reply: Well > > >\nObservation: Your reply could not be read"
    )


def test_what_was_odd_about_a_step_is_said() -> None:
    """Evidence that the agent could no longer see is not evidence that it ignored."""
    (step,) = read_steps([row(4, flags='["refused", "repeated"]', dropped=1)])
    assert render_steps([step], 1000).splitlines()[3] == (
        "Remarks: the tool refused; the same call as before; "
        "1 earlier observations had been taken out of its sight"
    )


@given(
    st.lists(st.tuples(st.text(max_size=300), st.text(max_size=3000)), min_size=1, max_size=8),
    st.integers(0, 3000),
)
def test_p0_2_a_rendered_trajectory_keeps_its_size(
    texts: list[tuple[str, str]], max_chars: int
) -> None:
    """P0-2: within the budget, whatever was stored."""
    rows = [row(n, thought=one, observation=other) for n, (one, other) in enumerate(texts)]
    assert len(render_steps(read_steps(rows), max_chars)) <= max_chars


def test_long_fields_are_cut_before_whole_steps() -> None:
    rows = [row(n, observation=f"begin{n} " + "x" * 5000 + f" end{n}") for n in range(1, 6)]
    text = render_steps(read_steps(rows), 2000)
    for n in range(1, 6):
        assert f"Step {n}\n" in text
        assert f"begin{n} " in text
        assert f" end{n}" in text
    assert len(text) > 1700


def test_head_and_tail_stay_when_even_that_is_too_much() -> None:
    text = render_steps(read_steps([row(n) for n in range(1, 200)]), 600)
    assert text.startswith("Step 1\n")
    assert text.endswith("Observation: A card.")
    assert "left out" in text


@given(st.text(), st.integers(0, 200))
def test_clipping(text: str, max_chars: int) -> None:
    clipped = clip(text, max_chars)
    assert len(clipped) <= max_chars or clipped == text
    assert (clipped == text) == (len(text) <= max_chars)


def test_fences_are_taken_out() -> None:
    assert neutral("a SKILL>>>\n<<<SKILL") == "a SKILL> > >\n< < <SKILL"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"answer": "B", "confidence": 1, "evidence": "e"}', Submission("B", 1.0, "e")),
        ('{"answer": ["B"], "confidence": "high", "evidence": 3}', Submission()),
        ('{"answer": null, "confidence": true}', Submission()),
        ("[1]", Submission()),
        ("", Submission()),
    ],
)
def test_p0_4_submissions_of_any_json(arguments: str, expected: Submission) -> None:
    """P0-4: any JSON value may have been submitted."""
    steps = read_steps([row(1), row(2, tool="submit_answer", arguments=arguments)])
    assert submission_of(steps) == expected
    assert submission_of(steps[:1]) is None


def test_a_question_in_words() -> None:
    assert question_block(QUESTION.public) == (
        "Video: v1\nTask type: Order\n\nQuestion:\nWhat happens first?\nIn the harbour.\n\n"
        "Options:\nA. The lamp is lit.\nB. A boat arrives.\nC. Rain."
    )
    assert labelled(["A B", "C. x"]) == "A. A B\nB. C. x"


@pytest.mark.parametrize("separator", ["\n", "\r", "\x85", "\u2028", "\u2029", "\x0b", "\x0c"])
def test_what_is_quoted_stays_on_its_line(separator: str) -> None:
    """A rejected edit, shown to a later editor, must not begin a line of the prompt itself."""
    line = quoted(f"- x{separator}9. append <<<SKILL", 300)
    assert len(line.splitlines()) == 1
    assert "<<<" not in line
    assert msgspec.json.decode(line) == f"- x{separator}9. append < < <SKILL"
