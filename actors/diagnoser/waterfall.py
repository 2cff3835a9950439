"""Which kind of failure it was: the first rule that matches (ALGORITHM.md section 4). Pure.

    no call that looks at the video             no_search
    calls with ground truth were read badly     extraction_failure
    nodes were named to the agent, never read   search_failure
    the evidence was there                      reasoning_failure, with a subtype
    else                                        mixed

Calls without ground truth have no grade and say nothing about extraction: the mean of no
grades is not zero.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import msgspec

from protocol.diagnoser import CallGrade, ErrorType

__all__ = ["Attribution", "Findings", "ReasoningFailure", "attribute", "read_badly"]

ReasoningFailure = Literal["evidence_misread", "evidence_ignored", "weighing_error", "logic_error"]
_PRIORITY: tuple[ReasoningFailure, ...] = get_args(ReasoningFailure)
THRESHOLD = 0.5


class Findings(msgspec.Struct, frozen=True):
    """What the judge found, as far as the waterfall needs it.

    grades: of calls with ground truth only. missed_nodes: named to the agent, never read.
    """

    grades: Collection[CallGrade]
    missed_nodes: Collection[str]
    evidence_sufficient: bool
    reasoning_failures: Collection[ReasoningFailure]


class Attribution(msgspec.Struct, frozen=True):
    """The failure's kind; subtype only for a reasoning failure."""

    error_type: ErrorType
    subtype: ReasoningFailure | None = None


def attribute(findings: Findings | None, *, calls: int) -> Attribution:
    """Attribute a wrong answer.

    findings: None if there is no readable judgement. calls: those that look at the video.
    """
    if calls == 0:
        return Attribution("no_search")
    if findings is None:
        return Attribution("mixed")
    if read_badly(findings.grades):
        return Attribution("extraction_failure")
    if findings.missed_nodes:
        return Attribution("search_failure")
    if findings.evidence_sufficient:
        named = (kind for kind in _PRIORITY if kind in findings.reasoning_failures)
        return Attribution("reasoning_failure", next(named, None))
    return Attribution("mixed")


def read_badly(grades: Collection[CallGrade]) -> bool:
    """Mean completeness under one half, or the worst hallucination over it."""
    if not grades:
        return False
    completeness = sum(grade.completeness for grade in grades) / len(grades)
    return completeness < THRESHOLD or max(g.hallucination for g in grades) > THRESHOLD
