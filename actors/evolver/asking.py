"""What the end of a conversation with the editor means for a proposal. Pure."""

from __future__ import annotations

from typing import TypeVar

from prompts.conversation import NotUnderstood, Understood, Unreachable
from protocol.evolver import EditReport, NoProposal, Reason

__all__ = ["no_proposal", "why_silent"]

T = TypeVar("T")


def why_silent(asked: NotUnderstood | Unreachable) -> tuple[Reason, str]:
    """Why a conversation brought nothing.

    A crash is this chat's own and counts as a failure of the editor; any other failure is an
    outage, which must not decide what is proposed.
    """
    if isinstance(asked, NotUnderstood):
        return "editor_failed", f"unreadable: {asked.problem}"
    failure = asked.failure
    if failure.kind == "crash":
        return "editor_failed", failure.why
    return ("editor_refused" if failure.lasting else "editor_unreachable"), failure.why


def no_proposal(
    reason: Reason,
    detail: str,
    asked: Understood[T] | NotUnderstood | Unreachable | None = None,
    reports: tuple[EditReport, ...] = (),
) -> NoProposal:
    """Nothing to test; asked: the conversation, None if there was none."""
    return NoProposal(
        reason=reason,
        detail=detail,
        reports=reports,
        editor_calls=asked.calls if asked else 0,
        parse_failures=asked.parse_failures if asked else 0,
    )
