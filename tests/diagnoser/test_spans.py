"""Single calls for the editors of tool prompts: those that went badly, those that went well."""

from __future__ import annotations

from tests.diagnoser.make import call, diagnosed, submit
from tests.diagnoser.shelf import LOOK, Shelf, graded, names, tool


def test_failing_and_good_spans() -> None:
    rows = (
        call(1, "search_similar", '{"query": "boat"}', '["v1_L2_004"]', observation="hits"),
        call(2, "view_node", LOOK, '["v1_L1_000"]', observation="a card", thought="Next."),
        call(3, "view_node", '{"node_id": "x"}', observation="There is no node 'x'."),
        submit(4),
    )
    shelf = Shelf().add(
        "a", rows=rows, judged=diagnosed(grades=graded((1, 1.0, 0.0), (2, 0.5, 0.75)))
    )
    shelf.add("b", rows=rows, judged=diagnosed(grades=graded((1, 0.25, 0.0), (2, 1.0, 0.25))))
    packs = shelf.packs()
    view, search = tool(packs, "view_node"), tool(packs, "search_similar")
    assert [(span.question_id, span.step, span.reason) for span in view.failing] == [
        ("a", 2, "claims about it that its text does not support"),
        ("a", 3, "it showed nothing"),
        ("b", 3, "it showed nothing"),
    ]
    assert view.good == ()
    assert [(span.question_id, span.reason) for span in search.failing] == [
        ("b", "most of what mattered was lost")
    ]
    (good,) = search.good
    assert (good.question_id, good.arguments) == ("a", '{"query": "boat"}')
    assert (good.observation, good.follows) == ("hits", "Next.")
    assert (good.completeness, good.hallucination) == (1.0, 0.0)
    assert (view.calls, view.empty, view.graded) == (4, 2, 2)
    assert (view.completeness, view.hallucination) == (0.75, 0.75)


def test_evidence_of_a_right_answer_is_a_good_span() -> None:
    """Right answers are not judged; what they cite was worth the call."""
    proof = '{"answer": "B", "confidence": 0.9, "evidence": "v1_L1_000: a boat"}'
    look = call(1, "view_node", LOOK, '["v1_L1_000"]')
    other = call(2, "search_similar", "{}", '["v1_L2_009"]')
    rows = (look, other, call(3, "submit_answer", proof))
    packs = Shelf().add("a", rows=rows, outcome="right").packs()
    assert [span.reason for span in tool(packs, "view_node").good] == ["evidence of a right answer"]
    assert tool(packs, "search_similar").good == ()
    assert [span.reason for span in tool(packs, "submit_answer").good] == ["sure and right"]


def test_submissions_without_a_letter_fail() -> None:
    """One that ended nothing, and the last of an answer without a letter."""
    odd = call(1, "submit_answer", '{"answer": "both"}', observation="Submit exactly one of A, B.")
    shelf = Shelf().add("q1", rows=(odd, submit(2, 0.1)))
    shelf.add("q2", rows=(odd,), stop="no_answer", letter=None)
    shelf.add("q3", rows=(submit(1, 0.8),))
    failing = tool(shelf.packs(), "submit_answer").failing
    assert [(span.question_id, span.reason) for span in failing] == [
        ("q1", "no valid letter"),
        ("q2", "no valid letter"),
        ("q3", "sure and wrong"),
    ]
    assert failing[0].observation == "Submit exactly one of [an option], [an option]."


def test_refused_calls_fail_whatever_the_tool() -> None:
    """A wrong argument, an unknown strategy; a strategy that was read has shown nothing amiss."""
    rows = (
        call(1, "search_similar", "{}", flags='["bad_call"]'),
        call(2, "read_skill", '{"name": "x"}', flags='["refused"]'),
        call(3, "read_skill", '{"name": "Order"}', observation="- Look twice."),
        submit(4),
    )
    shelf = Shelf().add("q1", rows=rows)
    search, read = shelf.packs(tools=("search_similar", "read_skill")).tools
    assert [(span.step, span.reason) for span in search.failing] == [(1, "it was refused")]
    assert [(span.step, span.reason) for span in read.failing] == [(2, "it was refused")]
    assert (search.calls, search.empty, read.calls, read.empty) == (1, 1, 2, 0)


def test_a_tool_that_was_never_called() -> None:
    pack = tool(Shelf().add("a").packs(), "search_similar")
    assert (pack.calls, pack.graded, pack.completeness, pack.hallucination) == (0, 0, None, None)


def test_a_few_spans_of_many_and_not_all_of_one_kind() -> None:
    shelf = Shelf()
    empty = call(1, "view_node", '{"node_id": "x"}')
    for number in range(9):
        shelf.add(f"a{number}", rows=(empty, empty, submit(3)))
        shelf.add(f"b{number}", judged=diagnosed(grades=graded((1, 0.0, 0.0))))
    assert names(tool(shelf.packs(), "view_node").failing) == ["b0", "b1", "a0", "a1"]
