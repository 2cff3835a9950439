"""Whether a pass may be learnt from: enough was answered, and the answers could be read."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from actors.trainer.score import Score, score
from protocol.base import Refused
from protocol.rollout import (
    Answered,
    Missed,
    mostly_unreadable,
    out_of_budget,
    reasons_of,
    unreadable,
)

__all__ = ["outage", "too_little", "unread"]

log = structlog.get_logger("trainer")

_UNREADABLE_SHARE = 0.2
"""Of a pass: from here on it is told."""


def too_little(
    run_key: str, results: Sequence[Answered | Missed], min_coverage: float
) -> Refused | None:
    """Why nothing may be learnt from a small pass; None: enough was answered.

    One missing answer is borne, whatever its share; a limit of the configuration never is.
    """
    counted = score(results)
    borne = max(1, (1.0 - min_coverage) * counted.planned)
    if counted.missing > borne or out_of_budget(results):
        return outage(run_key, counted, results)
    return None


def outage(run_key: str, counted: Score, results: Sequence[Answered | Missed]) -> Refused:
    """Why the pass does not count, by what the endpoint or the disk said."""
    missed = [result for result in results if isinstance(result, Missed)]
    nothing = counted.missing == counted.planned
    try_all = " (bin/train CONFIG --check tries every endpoint)" if nothing else ""
    return Refused(
        what=(
            f"{run_key}: only {counted.coverage:.1%} of {counted.planned} questions were "
            f"answered, {counted.missing} are missing"
        ),
        remedy=f"mend what the reasons name{try_all}, then resume; nothing is lost, "
        "nothing was scored",
        details=reasons_of(missed),
        passing=not any(result.lasting for result in missed),
    )


def unread(
    run_key: str, results: Sequence[Answered | Missed], max_unreadable_share: float
) -> Refused | None:
    """Why nothing may be learnt from replies that are no actions; None: enough are (row P1-4).

    A few are wrong answers and nothing more; many are told; more than the share say that the
    endpoint does not serve what it should, and no accuracy, no edit and no test is about that.
    """
    count = unreadable(results)
    if count > _UNREADABLE_SHARE * len(results):
        log.warning(
            "pass.unreadable",
            run_key=run_key,
            rollouts=count,
            of=len(results),
            remedy="the model does not keep to the reply format: see run.db, traces.raw",
        )
    if not mostly_unreadable(results, max_unreadable_share):
        return None
    return Refused(
        what=f"{run_key}: {count} of {len(results)} answers could not be read: "
        "the agent's replies are no actions",
        remedy="look at the agent's endpoint (is it the right model, with its chat template? "
        "run.db has the replies in traces.raw), then resume: the pass is drawn anew. If the model "
        "is like this, raise trainer.max_unreadable_share (--accept-change)",
    )
