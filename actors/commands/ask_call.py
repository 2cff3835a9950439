"""One chat through the chat client, outside a run: the smallest composition root.

The actors are those of a run, only fewer: llm, cache and ledger, and the simulator where it is the
endpoint. The ledger's file lies in a temporary folder and goes with it. Never prints, never reads a
configuration.
"""

from __future__ import annotations

import math
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import anyio
import msgspec
from anyio.abc import TaskStatus

from actors.cache.actor import CacheActor
from actors.ledger.actor import LedgerActor
from actors.ledger.reader import open_reader
from actors.llm.actor import LlmActor
from actors.runtime.errors import AskFailed, SystemFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from protocol.llm import Attempt, Chat, ChatAnswer, ChatFailed, FailureKind
from protocol.rows import AttemptRow
from protocol.settings import (
    CacheSettings,
    LimitSettings,
    LlmSettings,
    RuntimeSettings,
    TwinSettings,
)

__all__ = ["AskPlan", "Said", "Simulator", "ask_once"]

_GRACE_S = 0.5
"""The client's own clocks say more about an end than ours does: they may go first."""
_LINGER_S = 0.5
_LEDGER_HANDLERS = 4
_TWIN = "twin"
_NO_LIMITS = LimitSettings(max_calls=None, max_tokens=None, max_usd=None)


class Simulator(msgspec.Struct, frozen=True):
    """The simulator to start, and the two files that it plays."""

    settings: TwinSettings
    world: Path
    questions: Path


class AskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, of whom and how long. cache_path: the file of the backend ``sqlite``.

    within_s: seconds after which the call is ended, whatever it waits for. simulator: None: the
    endpoints are real ones.
    """

    chat: Chat
    llm: LlmSettings
    runtime: RuntimeSettings
    cache: CacheSettings
    cache_path: Path
    within_s: float
    simulator: Simulator | None = None


class Said(msgspec.Struct, frozen=True):
    """What came of it. seconds: the whole call with its waits."""

    reply: ChatAnswer | ChatFailed
    seconds: float


def ask_once(plan: AskPlan, tell: Callable[[Said], int]) -> int:
    """Ask; hand what was said to ``tell``, which returns the exit code.

    SIGINT and SIGTERM end it at once, without a word: 130 or 143. Needs the main thread.

    Raises OSError if there is no room for a temporary folder.
    """
    with ExitStack() as afterwards:
        return anyio.run(_whole, plan, tell, afterwards)


async def _whole(plan: AskPlan, tell: Callable[[Said], int], afterwards: ExitStack) -> int:
    with TemporaryDirectory(prefix="trm-ask-") as folder:
        said = await _unless_signalled(plan, Path(folder))
    code = 128 + said if isinstance(said, signal.Signals) else tell(said)
    # A name that is being resolved cannot be cancelled: its thread would hold up the exit for as
    # long as the resolver likes. All is said and cleared away by now, so do not wait for it.
    leave = Timer(_LINGER_S, os._exit, (code,))
    leave.daemon = True
    leave.start()
    afterwards.callback(leave.cancel)
    return code


async def _unless_signalled(plan: AskPlan, folder: Path) -> Said | signal.Signals:
    result: Said | signal.Signals = signal.SIGINT

    async def watch(*, task_status: TaskStatus[None]) -> None:
        nonlocal result
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            task_status.started()
            async for number in received:
                result = number
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch)
        result = await _said(plan, folder)
        tasks.cancel_scope.cancel()
    return result


async def _said(plan: AskPlan, folder: Path) -> Said:
    begun = anyio.current_time()
    reply: ChatAnswer | ChatFailed | None = None
    seconds: float | None = None
    database = folder / "run.db"
    try:
        async with _started(plan, folder) as system:
            begun = anyio.current_time()
            # Not a deadline of the ask: that would bind the client's last row in the ledger too.
            with anyio.move_on_after(plan.within_s + _GRACE_S):
                try:
                    reply = await system.address("llm").ask(plan.chat, timeout_s=math.inf)
                except AskFailed as failure:
                    reply = plan.chat.crashed(str(failure))
            seconds = anyio.current_time() - begun
    except SystemFailed as failure:
        if reply is None:
            reply = ChatFailed(kind="crash", fatal=True, detail=str(failure))
    if reply is None:
        reply = _out_of_time(plan, database)
    return Said(reply, anyio.current_time() - begun if seconds is None else seconds)


@asynccontextmanager
async def _started(plan: AskPlan, folder: Path) -> AsyncIterator[Supervisor]:
    """The actors, running. Raises SystemFailed."""
    specs: list[ActorSpec] = []
    with ExitStack() as stack:
        if plan.simulator is not None:
            from actors.twin.process import base_url_of, bind_loopback

            listener = stack.enter_context(bind_loopback())
            specs.append(_twin_spec(plan.simulator, listener, folder))
            plan = msgspec.structs.replace(plan, llm=_with_address(plan.llm, base_url_of(listener)))
        specs += _specs(plan, folder / "run.db")
        async with Supervisor(specs, plan.runtime) as system:
            yield system


def _with_address(llm: LlmSettings, base_url: str) -> LlmSettings:
    endpoints = tuple(
        msgspec.structs.replace(endpoint, base_url=base_url)
        if endpoint.base_url == _TWIN
        else endpoint
        for endpoint in llm.endpoints
    )
    return msgspec.structs.replace(llm, endpoints=endpoints)


def _twin_spec(simulator: Simulator, listener: socket.socket, folder: Path) -> ActorSpec:
    from actors.twin.actor import TwinActor  # with a web server, which no other call needs

    return ActorSpec(
        name=_TWIN,
        factory=lambda _: TwinActor(
            simulator.settings,
            world=simulator.world,
            questions=simulator.questions,
            listener=listener,
            log_path=folder / "twin.log",
        ),
    )


def _specs(plan: AskPlan, database: Path) -> list[ActorSpec]:
    return [
        ActorSpec(
            name="ledger",
            factory=lambda _: LedgerActor(database, _LEDGER_HANDLERS),
            concurrency=_LEDGER_HANDLERS,
        ),
        ActorSpec(
            name="cache",
            # what the environment says about a shared cache is not meant for this file
            factory=lambda _: CacheActor(plan.cache, plan.cache_path, environ={}),
        ),
        ActorSpec(
            name="llm",
            factory=lambda peers: LlmActor(plan.llm, _NO_LIMITS, peers("cache"), peers("ledger")),
            asks=("cache", "ledger"),
        ),
    ]


def _out_of_time(plan: AskPlan, database: Path) -> ChatFailed:
    """The call waited for its turn when its time was over: what it had tried is in the ledger."""
    with open_reader(database) as reader:
        rows = sorted(reader.rows(AttemptRow), key=lambda row: row.attempt)
    attempts = tuple(
        Attempt(
            endpoint=row.endpoint,
            outcome=row.outcome,
            seconds=row.seconds,
            first_token_s=row.first_token_s,
            detail=row.detail,
        )
        for row in rows
    )
    detail = f"no answer within {plan.within_s:g} s"
    kind: FailureKind = "timeout"
    if attempts and attempts[-1].outcome not in ("ok", "cancelled"):
        last = attempts[-1]
        kind = msgspec.convert(last.outcome, FailureKind)
        detail += f"; the last try: {last.detail}"
    return ChatFailed(kind=kind, fatal=False, detail=detail, attempts=attempts)
