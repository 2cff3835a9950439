"""Rule metrics."""

from __future__ import annotations

import pytest

from actors.diagnoser.metrics import (
    Calibration,
    ToolUse,
    calibration_of,
    describe,
    gradable,
    measure,
    mentioned_nodes,
    seen_nodes,
)
from prompts.trajectory import read_steps
from tests.diagnoser.make import call, submit

STEPS = read_steps(
    [
        call(1, "search_similar", '{"query": "boat in the harbour"}', '["v1_L2_004"]'),
        call(2, "search_subtitles", '{"query": "boat in the harbor"}'),
        call(3, "view_node", '{"node_id": "v1_L1_000"}', '["v1_L1_000", "v1_L2_001"]'),
        call(4, None, raw="I think"),
        call(5, "view_node", '{"node_id": "v1_L3_007"}', '["v1_L3_007"]'),
        call(6, "view_node", '{"node_id": "v1_L1_000"}', '["v1_L1_000"]'),
        submit(7),
    ]
)


def test_a_whole_trajectory() -> None:
    metrics = measure(STEPS)
    assert (metrics.steps, metrics.tokens) == (7, 105)
    assert metrics.format_compliance == pytest.approx(6 / 7)
    assert metrics.unreadable == 1
    assert metrics.tools == (
        ToolUse("search_similar", 1),
        ToolUse("search_subtitles", 1, empty=1),
        ToolUse("view_node", 3),
    )
    assert (metrics.calls, metrics.grounded_calls) == (5, 4)
    assert metrics.repeat_visits == pytest.approx(1 / 3)
    assert 0.7 < metrics.query_repetition < 1.0
    assert (metrics.levels, metrics.level_jumps) == ("L1>L3>L1", 2)
    assert (metrics.confidence, metrics.calibration) == (0.9, "high_conf_wrong")


@pytest.mark.parametrize(
    ("max_calls", "use", "early"), [(None, None, False), (20, 0.25, True), (10, 0.5, False)]
)
def test_budget(max_calls: int | None, use: float | None, early: bool) -> None:
    """Calls that look, over those that are allowed; unknown where another program answered."""
    metrics = measure(STEPS, max_calls=max_calls)
    assert metrics.budget_use == (None if use is None else pytest.approx(use))
    assert metrics.early is early


def test_an_answer_without_a_look_is_early_whatever_the_budget() -> None:
    steps = read_steps([submit(1)])
    assert measure(steps).early
    assert measure(steps, max_calls=8).early
    assert measure(steps, max_calls=8).budget_use == 0.0


@pytest.mark.parametrize(
    ("confidence", "right", "said"),
    [
        (None, False, "unstated"),
        (0.7, False, "high_conf_wrong"),
        (0.69, False, "calibrated"),
        (0.7, True, "calibrated"),
        (0.49, True, "low_conf_right"),
        (0.5, True, "calibrated"),
        (0.1, False, "calibrated"),
    ],
)
def test_calibration(confidence: float | None, right: bool, said: Calibration) -> None:
    """Sure from 0.7 on, unsure below 0.5, each set against the outcome."""
    assert calibration_of(confidence, right=right) == said


def test_trigram_likeness_at_its_ends() -> None:
    def likeness(one: str, other: str) -> float:
        rows = [call(1, "search_similar", one), call(2, "search_similar", other)]
        return measure(read_steps(rows)).query_repetition

    assert likeness('{"query": "Red  car"}', '{"query": "red car"}') == 1.0
    assert likeness('{"query": "red car"}', '{"query": "blue sky"}') == 0.0
    assert likeness('{"query": "ab"}', '{"query": "AB"}') == 1.0
    assert likeness('{"query": ""}', '{"query": ""}') == 0.0
    assert likeness('{"query": "ab"}', "{}") == 0.0


def test_nothing_but_an_answer() -> None:
    metrics = measure(read_steps([submit(1, 0.4)]))
    assert (metrics.calls, metrics.grounded_calls, metrics.tools) == (0, 0, ())
    assert metrics.calibration == "calibrated"
    assert "calls: none" in describe(metrics)


@pytest.mark.parametrize("arguments", ["", "[]", "3", '{"node_id": 3, "query": {}}', "{broken"])
def test_p0_4_odd_arguments_do_no_harm(arguments: str) -> None:
    """P0-4: whatever JSON the agent sent."""
    steps = read_steps(
        [
            call(1, "view_node", arguments),
            call(2, "search_similar", arguments),
            call(3, "submit_answer", arguments),
        ]
    )
    metrics = measure(steps)
    assert (metrics.calls, metrics.levels, metrics.confidence) == (2, "", None)
    assert "not stated" in describe(metrics)


def test_what_was_read_is_what_was_opened_or_returned_by_a_search() -> None:
    """A child that a node lists was not read; a search hit was."""
    assert seen_nodes(STEPS) == {"v1_L2_004", "v1_L1_000", "v1_L3_007"}


def test_pictures_that_were_observed_were_seen_but_have_no_text_to_grade_by() -> None:
    """Whatever tool shows a node, its node was visited; a picture is no ground truth in words."""
    (step,) = read_steps([call(1, "observe_frame", "{}", '["v1_L3_001", "v1_L3_002"]')])
    assert seen_nodes([step]) == {"v1_L3_001", "v1_L3_002"}
    assert not gradable(step)


def test_a_view_that_was_refused_opened_nothing() -> None:
    """It neither counts as a visit nor makes the node exist."""
    steps = read_steps(
        [
            call(1, "view_node", '{"node_id": "v1_L9_999"}', observation="No node v1_L9_999."),
            call(2, "view_node", '{"node_id": "v1_L9_999"}', observation="No node v1_L9_999."),
        ]
    )
    metrics = measure(steps)
    assert seen_nodes(steps) == frozenset()
    assert mentioned_nodes(steps) == frozenset()
    assert (metrics.calls, metrics.grounded_calls, metrics.levels) == (2, 0, "")
    assert metrics.repeat_visits == 0.0
    assert "view_node x2 (2 showed nothing)" in describe(metrics)


def test_reading_a_skill_is_no_look() -> None:
    """An agent that read its strategy and answered has not searched."""
    steps = read_steps([call(1, "read_skill", '{"name": "Order"}'), submit(2)])
    metrics = measure(steps, max_calls=8)
    assert (metrics.calls, metrics.tools, metrics.budget_use) == (0, (), 0.0)
    assert metrics.early


def test_repeated_calls_are_those_that_the_rollout_flagged() -> None:
    rows = [call(1, "search_similar"), call(2, "search_similar", flags='["repeated"]'), submit(3)]
    metrics = measure(read_steps(rows))
    assert metrics.repeated_calls == 1
    assert "repeated calls: 1" in describe(metrics)


def test_mentioned_nodes_stand_in_lists_texts_and_thoughts() -> None:
    rows = [
        call(1, "view_node", '{"node_id": "v1_L1_000"}', '["v1_L1_000", "-x_L2_001"]'),
        call(2, None, raw="?", observation="The top level is: v1_L1_000, v1_L1_001."),
        call(3, "submit_answer", thought="I saw v1_L3_004."),
    ]
    named = mentioned_nodes(read_steps(rows))
    assert named == {"v1_L1_000", "-x_L2_001", "v1_L1_001", "v1_L3_004"}


def test_the_description_names_every_metric() -> None:
    text = describe(measure(STEPS, max_calls=10))
    assert "steps: 7, 50% of the allowed calls, tokens: 105" in text
    assert "readable replies: 86%" in text
    assert "view_node x3" in text
    assert "L1>L3>L1" in text
    assert "0.90 (sure and wrong)" in text
    assert "(unsure and right)" in describe(measure(read_steps([submit(1, 0.2)]), right=True))


@pytest.mark.parametrize(("sent", "read"), [("0.9", 0.9), ('"0.9"', 0.9), ("7", 1.0), ("-1", 0.0)])
def test_confidence_is_read_as_the_rollout_reads_it(sent: str, read: float) -> None:
    """A number in quotes is one; what lies outside is clamped."""
    rows = [call(1, "submit_answer", f'{{"answer": "C", "confidence": {sent}}}')]
    assert measure(read_steps(rows)).confidence == read


@pytest.mark.parametrize("sent", ['"sure"', "true", "null", "[]", '"nan"', '""'])
def test_confidence_that_is_no_number_was_not_stated(sent: str) -> None:
    rows = [call(1, "submit_answer", f'{{"answer": "C", "confidence": {sent}}}')]
    assert measure(read_steps(rows)).confidence is None
