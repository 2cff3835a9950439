"""Work outside a training: the actors of a run started for one pass over many items.

What the baseline pass (``actors.commands.seeding``) and the offline diagnosis
(``actors.commands.diagnosing``) have in common: the simulator where it is the endpoint, signals
that are obeyed as in a training, no more items at a time than the actors can work on, and a
verdict of the judge or the reason why there is none. Decides nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TypeVar

import anyio

from actors.commands.progress import Progress
from actors.runtime.errors import ActorDead, AskFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.system import uses_twin, with_twin_address
from actors.twin.process import base_url_of, bind_loopback
from protocol.base import Refused
from protocol.diagnoser import Diagnose, Diagnosis
from protocol.settings import Config

__all__ = ["SpecsOf", "ask_judge", "for_each", "run_offline"]

_STOP_S = 8.0

SpecsOf = Callable[[Config, "socket.socket | None"], Sequence[ActorSpec]]
"""The actors for a configuration with real addresses; the socket is the simulator's."""

T = TypeVar("T")


async def run_offline(
    config: Config, specs_of: SpecsOf, work: Callable[[Supervisor], Awaitable[None]]
) -> bool:
    """Start the actors, do the work, stop them. SIGINT and SIGTERM are obeyed as in a training.

    Returns whether a second signal asked for a stop at once. Raises SystemFailed.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(bind_loopback()) if uses_twin(config) else None
        if listener is not None:
            config = with_twin_address(config, base_url_of(listener))
        system = Supervisor(
            specs_of(config, listener), config.runtime, signals=True, stop_s=_STOP_S
        )
        try:
            async with system:
                await work(system)
        except ActorDead:  # a signal came while the actors were starting
            if not system.draining:
                raise
        return system.cut_short


async def for_each(
    system: Supervisor,
    items: Iterable[T],
    one: Callable[[T], Awaitable[None]],
    *,
    width: int,
    progress: Progress | None,
) -> None:
    """Do ``one`` for every item, ``width`` at a time; after a stop nothing new is begun."""
    limiter = anyio.CapacityLimiter(width)

    async def guarded(item: T) -> None:
        async with limiter:
            if system.draining:
                return
            try:
                await one(item)
            except ActorDead:
                if not system.draining:
                    raise
                return
        if progress is not None:
            progress.step()

    async with anyio.create_task_group() as group:
        for item in items:
            group.start_soon(guarded, item)


async def ask_judge(system: Supervisor, request: Diagnose) -> Diagnosis | str | None:
    """The verdict, or a line that says why there is none; None: the stop may have cut it off.

    Raises ActorDead.
    """
    question_id = request.question.question_id
    try:
        found = await system.address("diagnoser").ask(request)
    except ActorDead:
        raise
    except AskFailed as failure:
        return f"{question_id}: {failure}"
    if isinstance(found, Refused):
        return f"{question_id}: {found.what}"
    if found.cause is None:
        return None if system.draining else f"{question_id}: {found.finding}"
    return found
