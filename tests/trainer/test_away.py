"""One rule for agent, judge and editor: what stops a run for now, and what until it is mended."""

from __future__ import annotations

from typing import get_args

import pytest

from actors.diagnoser.actor import DiagnoserActor
from actors.evolver.asking import why_silent
from actors.trainer.step import editor_away, silent_judge
from actors.trainer.usable import too_little
from prompts.conversation import Unreachable
from protocol.base import Refused, Request
from protocol.diagnoser import Diagnosis
from protocol.evolver import NoProposal
from protocol.ledger import Record, Recorded, Select, Selected
from protocol.llm import Attempt, ChatFailed, FailureKind
from protocol.rollout import Missed
from protocol.rows import DiagnosisRow
from tests.diagnoser.make import REQUEST, SETTINGS, call, submit
from tests.support.fakes import FakeAddress

pytestmark = pytest.mark.anyio

WHY = "HTTP 401: Invalid API key"


def chat_failed(kind: FailureKind) -> ChatFailed:
    """As the client says it."""
    tried = (Attempt(endpoint="strong", outcome=kind, seconds=0.1, detail=WHY),)
    return ChatFailed(kind=kind, fatal=kind == "retry_after_too_long", detail=WHY, attempts=tried)


async def judged(failure: ChatFailed) -> tuple[Diagnosis, DiagnosisRow]:
    """The diagnosis that comes of it, and what is stored."""
    stored: list[DiagnosisRow] = []

    async def judge(_: Request[object]) -> object:
        return failure

    async def ledger(request: Request[object]) -> object:
        if isinstance(request, Select):
            return Selected(rows=(call(1, "view_node"), submit(2)))
        assert isinstance(request, Record)
        stored.extend(row for row in request.rows if isinstance(row, DiagnosisRow))
        return Recorded(rows=1)

    actor = DiagnoserActor(SETTINGS, FakeAddress("llm", judge), FakeAddress("ledger", ledger))
    found = await actor.on_diagnose(REQUEST)
    assert isinstance(found, Diagnosis)
    return found, stored[0]


def by_agent(failure: ChatFailed) -> Refused:
    """A pass of which nothing was answered."""
    lost = [Missed(question_id=f"q{n}", kind=failure.kind, detail=failure.detail) for n in range(9)]
    refused = too_little("e1", lost, 0.95)
    assert refused is not None
    return refused


async def by_judge(failure: ChatFailed) -> Refused:
    """A step of which no wrong answer was judged."""
    refused = silent_judge("e1", [(await judged(failure))[0]] * 3, 0.5)
    assert refused is not None
    return refused


def by_editor(failure: ChatFailed) -> Refused | None:
    """A step without a proposal."""
    reason, detail = why_silent(Unreachable(failure, 1, 0))
    silent = NoProposal(reason=reason, detail=detail, reports=(), editor_calls=1, parse_failures=0)
    return editor_away("e1", silent)


@pytest.mark.parametrize("kind", get_args(FailureKind))
async def test_whichever_role_meets_it_the_run_ends_alike(kind: FailureKind) -> None:
    """As passing or not, by one list; and what the server said is among the reasons."""
    failure = chat_failed(kind)
    refused = [by_agent(failure), await by_judge(failure)]
    if kind != "crash":  # the editor's own, which costs a proposal and stops nothing
        away = by_editor(failure)
        assert away is not None
        refused.append(away)
    assert {one.passing for one in refused} == {not failure.lasting}
    for one in refused:
        assert f"{kind}: {WHY}" in one.details[0]
    assert all("(endpoint strong)" in one.details[0] for one in refused[1:])


async def test_what_a_server_said_is_neither_stored_nor_shown_to_an_editor() -> None:
    """It may hold anything, and differs from one try to the next."""
    found, row = await judged(chat_failed("auth"))
    assert found.unreached == f"auth: {WHY} (endpoint strong)"
    assert found.finding == row.finding == "No finding: the judge could not be reached (auth)."


async def test_a_judge_that_is_away_and_unreadable() -> None:
    """Both are said; nothing passes by itself while one of the causes does not."""
    away, _ = await judged(chat_failed("auth"))
    odd = Diagnosis(
        question_id="q9", error_type="mixed", subtype=None, cause="uncertain", degraded=True,
        finding="prose",
    )  # fmt: skip
    refused = silent_judge("e1", [away, odd, away], 0.5)
    assert refused is not None
    assert not refused.passing
    assert "100% of the diagnoses are degraded" in refused.what
    assert refused.details == (f"2 x auth: {WHY} (endpoint strong)", "q9: prose")
