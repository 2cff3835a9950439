"""The waterfall: first match wins."""

from __future__ import annotations

import pytest

from actors.diagnoser.waterfall import Attribution, Findings, ReasoningFailure, attribute


def findings(
    completeness: float = 0.9,
    hallucination: float = 0.1,
    missed_nodes: tuple[str, ...] = (),
    evidence_sufficient: bool = True,
    reasoning_failures: tuple[ReasoningFailure, ...] = ("logic_error",),
) -> Findings:
    return Findings(
        completeness=completeness,
        hallucination=hallucination,
        missed_nodes=missed_nodes,
        evidence_sufficient=evidence_sufficient,
        reasoning_failures=reasoning_failures,
    )


@pytest.mark.parametrize(
    ("found", "calls", "grounded", "expected"),
    [
        pytest.param(findings(completeness=0.0), 0, 0, "no_search", id="no call is no extraction"),
        pytest.param(findings(completeness=0.49), 2, 1, "extraction_failure", id="incomplete"),
        pytest.param(findings(completeness=0.5), 2, 1, "reasoning_failure", id="at the threshold"),
        pytest.param(findings(hallucination=0.51), 2, 1, "extraction_failure", id="invented"),
        pytest.param(findings(hallucination=0.5), 2, 1, "reasoning_failure", id="not over"),
        pytest.param(findings(completeness=0.0), 2, 0, "reasoning_failure", id="no ground truth"),
        pytest.param(
            findings(completeness=0.0, missed_nodes=("n",)), 2, 1, "extraction_failure", id="first"
        ),
        pytest.param(findings(missed_nodes=("n",)), 2, 1, "search_failure", id="missed"),
        pytest.param(findings(evidence_sufficient=False), 2, 1, "mixed", id="mixed"),
        pytest.param(None, 2, 1, "mixed", id="no judgement"),
        pytest.param(None, 0, 0, "no_search", id="no judgement, no call"),
    ],
)
def test_the_order(found: Findings | None, calls: int, grounded: int, expected: str) -> None:
    assert attribute(found, calls=calls, grounded_calls=grounded).error_type == expected


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
    wanted = Attribution("reasoning_failure", subtype)
    assert attribute(found, calls=1, grounded_calls=1) == wanted


def test_only_reasoning_failures_have_a_subtype() -> None:
    found = findings(evidence_sufficient=False, reasoning_failures=("logic_error",))
    assert attribute(found, calls=1, grounded_calls=1).subtype is None
