"""Rule metrics."""

from __future__ import annotations

import pytest

from actors.diagnoser.metrics import ToolUse, describe, measure, seen_nodes
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
    assert metrics.tools == (
        ToolUse("search_similar", 1),
        ToolUse("search_subtitles", 1),
        ToolUse("view_node", 3),
    )
    assert (metrics.calls, metrics.grounded_calls) == (5, 4)
    assert metrics.repeat_visits == pytest.approx(1 / 3)
    assert 0.7 < metrics.query_repetition < 1.0
    assert (metrics.levels, metrics.level_jumps) == ("L1>L3>L1", 2)
    assert (metrics.confidence, metrics.overconfident) == (0.9, True)


def test_trigram_likeness_at_its_ends() -> None:
    def likeness(one: str, other: str) -> float:
        rows = [call(1, "search_similar", one), call(2, "search_similar", other)]
        return measure(read_steps(rows)).query_repetition

    assert likeness('{"query": "Red  car"}', '{"query": "red car"}') == 1.0
    assert likeness('{"query": "red car"}', '{"query": "blue sky"}') == 0.0
    assert likeness('{"query": "ab"}', '{"query": "AB"}') == 1.0
    assert likeness('{"query": ""}', "{}") == 0.0


def test_nothing_but_an_answer() -> None:
    metrics = measure(read_steps([submit(1, 0.4)]))
    assert (metrics.calls, metrics.grounded_calls, metrics.tools) == (0, 0, ())
    assert not metrics.overconfident
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


def test_the_description_names_every_metric() -> None:
    text = describe(measure(STEPS))
    assert "view_node x3" in text
    assert "L1>L3>L1" in text
    assert "0.90 (sure and wrong)" in text
