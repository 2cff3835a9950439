"""The waterfall: first match wins."""

from __future__ import annotations

import pytest

from actors.diagnoser.waterfall import (
    Attribution,
    Findings,
    ReasoningFailure,
    attribute,
    read_badly,
)
from protocol.diagnoser import CallGrade

GOOD = ((0.9, 0.1),)


def grades(pairs: tuple[tuple[float, float], ...]) -> tuple[CallGrade, ...]:
    return tuple(
        CallGrade(step=step, completeness=completeness, hallucination=hallucination)
        for step, (completeness, hallucination) in enumerate(pairs, start=1)
    )


def findings(
    graded: tuple[tuple[float, float], ...] = GOOD,
    missed_nodes: tuple[str, ...] = (),
    evidence_sufficient: bool = True,
    reasoning_failures: tuple[ReasoningFailure, ...] = ("logic_error",),
) -> Findings:
    return Findings(
        grades=grades(graded),
        missed_nodes=missed_nodes,
        evidence_sufficient=evidence_sufficient,
        reasoning_failures=reasoning_failures,
    )


@pytest.mark.parametrize(
    ("found", "calls", "expected"),
    [
        pytest.param(findings(((0.0, 1.0),)), 0, "no_search", id="no call is no extraction"),
        pytest.param(findings(((0.49, 0.0),)), 2, "extraction_failure", id="incomplete"),
        pytest.param(findings(((0.5, 0.0),)), 2, "reasoning_failure", id="at the threshold"),
        pytest.param(findings(((1.0, 0.51),)), 2, "extraction_failure", id="invented"),
        pytest.param(findings(((1.0, 0.5),)), 2, "reasoning_failure", id="not over"),
        pytest.param(findings(()), 2, "reasoning_failure", id="no ground truth, no grade"),
        pytest.param(findings(((0.0, 0.0),), ("n",)), 2, "extraction_failure", id="first"),
        pytest.param(findings(missed_nodes=("n",)), 2, "search_failure", id="missed"),
        pytest.param(findings((), ("n",)), 2, "search_failure", id="missed, nothing graded"),
        pytest.param(findings(evidence_sufficient=False), 2, "mixed", id="mixed"),
        pytest.param(None, 2, "mixed", id="no judgement"),
        pytest.param(None, 0, "no_search", id="no judgement, no call"),
    ],
)
def test_the_order(found: Findings | None, calls: int, expected: str) -> None:
    assert attribute(found, calls=calls).error_type == expected


@pytest.mark.parametrize(
    ("graded", "badly"),
    [
        pytest.param((), False, id="none"),
        pytest.param(((0.0, 0.0), (1.0, 0.0)), False, id="the mean, not the worst completeness"),
        pytest.param(((0.0, 0.0), (0.9, 0.0)), True, id="a mean below one half"),
        pytest.param(((1.0, 0.0), (1.0, 0.0), (1.0, 0.6)), True, id="the worst hallucination"),
    ],
)
def test_completeness_by_its_mean_hallucination_by_its_worst(
    graded: tuple[tuple[float, float], ...], badly: bool
) -> None:
    assert read_badly(grades(graded)) is badly


@pytest.mark.parametrize(
    ("named", "subtype"),
    [
        ((), None),
        (("logic_error", "weighing_error"), "weighing_error"),
        (("weighing_error", "evidence_ignored"), "evidence_ignored"),
        (("evidence_ignored", "evidence_misread"), "evidence_misread"),
    ],
)
def test_the_priority_of_subtypes(
    named: tuple[ReasoningFailure, ...], subtype: ReasoningFailure | None
) -> None:
    found = findings(reasoning_failures=named)
    assert attribute(found, calls=1) == Attribution("reasoning_failure", subtype)


def test_only_reasoning_failures_have_a_subtype() -> None:
    found = findings(evidence_sufficient=False, reasoning_failures=("logic_error",))
    assert attribute(found, calls=1).subtype is None
