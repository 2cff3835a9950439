"""Which kind of failure it was: the first rule that matches (ALGORITHM.md section 4). Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import msgspec

from protocol.diagnoser import ErrorType

__all__ = ["Attribution", "Findings", "ReasoningFailure", "attribute"]

ReasoningFailure = Literal["evidence_misread", "evidence_ignored", "weighing_error", "logic_error"]
_PRIORITY: tuple[ReasoningFailure, ...] = get_args(ReasoningFailure)
THRESHOLD = 0.5


class Findings(msgspec.Struct, frozen=True):
    """What the judge found, as far as the waterfall needs it."""

    completeness: float
    hallucination: float
    missed_nodes: Collection[str]
    evidence_sufficient: bool
    reasoning_failures: Collection[ReasoningFailure]


class Attribution(msgspec.Struct, frozen=True):
    """The failure's kind; subtype only for a reasoning failure."""

    error_type: ErrorType
    subtype: ReasoningFailure | None = None


def attribute(findings: Findings | None, *, calls: int, grounded_calls: int) -> Attribution:
    """Attribute a wrong answer.

    findings: None if there is no readable judgement.
    calls: calls that look at the video; grounded_calls: those with ground truth, without
    which nothing can be said about extraction.
    """
    if calls == 0:
        return Attribution("no_search")
    if findings is None:
        return Attribution("mixed")
    poor = findings.completeness < THRESHOLD or findings.hallucination > THRESHOLD
    if grounded_calls > 0 and poor:
        return Attribution("extraction_failure")
    if findings.missed_nodes:
        return Attribution("search_failure")
    if findings.evidence_sufficient:
        named = (kind for kind in _PRIORITY if kind in findings.reasoning_failures)
        return Attribution("reasoning_failure", next(named, None))
    return Attribution("mixed")
