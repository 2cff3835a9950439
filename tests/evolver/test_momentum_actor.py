"""Momentum regions between ledger and editor."""

from __future__ import annotations

import pytest

from actors.evolver.actor import EvolverActor
from actors.runtime.errors import ActorCrashed
from prompts.trajectory import EmptyTrajectory
from protocol.base import Request
from protocol.evolver import NoProposal
from protocol.slow import Compared, MomentumWritten, WriteMomentum
from tests.evolver.make import settings, skill
from tests.evolver.slow_make import (
    AFTER,
    BEFORE,
    Ledger,
    compared,
    llm,
    momentum_reply,
    rejected_row,
    traces,
)
from tests.support.fakes import FakeAddress

RULE = "When two scenes fit, open both before you choose."
KEY = "e1/slow/momentum/order"


def request(*found: Compared) -> WriteMomentum:
    return WriteMomentum(run_key=KEY, skill=skill(), compared=found or (compared(),))


@pytest.mark.anyio
async def test_the_region_and_every_refused_rule_are_recorded() -> None:
    ledger = Ledger(*traces(), *traces("q-8-1"))
    editor = llm(momentum_reply(RULE, "See q-8-1."))
    actor = EvolverActor(settings(), editor, ledger.address)
    reply = await actor.on_write_momentum(request(compared("q-8-1", "stable"), compared()))
    assert isinstance(reply, MomentumWritten)
    assert [
        (row.run_key, row.position, row.document, row.op, row.target, row.status, row.task_type)
        for row in ledger.recorded
    ] == [
        (KEY, 0, "skill", "momentum", "", "applied", "Order"),
        (KEY, 1, "skill", "momentum", "", "leak", "Order"),
    ]
    assert ledger.recorded[0].content == reply.momentum
    assert ledger.recorded[0].support == '["q-8-1","q-7-1"]'


@pytest.mark.anyio
async def test_dropped_regions_of_the_class_are_read() -> None:
    first = EvolverActor(settings(), llm(momentum_reply(RULE)), Ledger(*traces()).address)
    before = await first.on_write_momentum(request())
    assert isinstance(before, MomentumWritten)
    rows = [
        rejected_row("momentum", notes=(before.momentum,), task_type=name)
        for name in ("Order", "Other")
    ]
    for row, expected in zip(rows, (NoProposal, MomentumWritten), strict=True):
        ledger = Ledger(*traces(), row)
        actor = EvolverActor(settings(), llm(momentum_reply(RULE)), ledger.address)
        assert isinstance(await actor.on_write_momentum(request()), expected)


@pytest.mark.anyio
@pytest.mark.parametrize("key", [BEFORE, AFTER])
async def test_p0_2_an_attempt_without_steps_is_an_error(key: str) -> None:
    """P0-2: under either key; the editor is not even asked."""
    ledger = Ledger(*(row for row in traces() if row.run_key != key))
    editor = llm()
    actor = EvolverActor(settings(), editor, ledger.address)
    with pytest.raises(EmptyTrajectory, match=f"q-7-1 in {key}"):
        await actor.on_write_momentum(request())
    assert editor.requests == []


@pytest.mark.anyio
async def test_a_crashed_editor_writes_no_region() -> None:
    async def crash(_: Request[object]) -> object:
        raise ActorCrashed("llm", "boom")

    ledger = Ledger(*traces())
    actor = EvolverActor(settings(), FakeAddress("llm", crash), ledger.address)
    reply = await actor.on_write_momentum(request())
    assert isinstance(reply, NoProposal)
    assert reply.reason == "editor_failed"
    assert ledger.recorded == []
