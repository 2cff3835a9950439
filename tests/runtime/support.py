"""Messages, one scripted actor and a journal: what the tests of the runtime are made of."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

import anyio
import msgspec
import pytest

from actors.runtime.actor import Actor, Context, handles, hears
from actors.runtime.address import Address
from actors.runtime.wiring import ActorSpec, Peers, Strategy
from protocol.base import Event, Message, Request
from protocol.settings import RuntimeSettings

on_trio = pytest.mark.parametrize("anyio_backend", ["trio"], indirect=True)
"""Only with the autojump clock: seconds are exact and cost nothing."""


class Done(Message, frozen=True, kw_only=True, tag=True):
    """``text``: what the act returned. ``incarnation``: which one answered."""

    text: str
    incarnation: int


class Do(Request[Done], frozen=True, kw_only=True, tag=True):
    """Act on a text; not to be repeated."""

    text: str


class DoSafely(Request[Done], frozen=True, kw_only=True, tag=True):
    """Act on a text; repeating does no harm."""

    IDEMPOTENT: ClassVar[bool] = True

    text: str


class Note(Event, frozen=True, kw_only=True, tag=True):
    """Act on a text; nobody waits."""

    text: str


class Unheard(Request[Done], frozen=True, kw_only=True, tag=True):
    """No actor handles this."""


class Boom(Exception):
    """The bug in the tests' actors."""


class Journal:
    """An ordered record, kept outside the actors because it must outlive them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def starting(self, prefix: str) -> list[str]:
        """The lines that begin so."""
        return [line for line in self.lines if line.startswith(prefix)]


Act = Callable[["Worker", str], Awaitable[str]]
Hook = Callable[["Worker"], Awaitable[None]]


async def echo(worker: Worker, text: str) -> str:
    """The simplest act."""
    worker.journal(f"{worker.name} {text}")
    return text


async def relay(worker: Worker, text: str) -> str:
    """Ask the only peer; an AskFailed passes through."""
    (peer,) = worker.peers.values()
    return (await peer.ask(Do(text=text))).text


async def obey(worker: Worker, text: str) -> str:
    """``boom ...`` raises, ``sleep N ...`` sleeps, anything is recorded and returned."""
    worker.journal(f"{worker.name} {text}")
    match text.split():
        case ["boom", *_]:
            raise Boom(text)
        case ["sleep", seconds, *_]:
            try:
                await anyio.sleep(float(seconds))
            except anyio.get_cancelled_exc_class():
                worker.journal(f"{worker.name} cancelled {text}")
                raise
    return text


async def nothing(worker: Worker) -> None:
    """The default hook."""


class Worker(Actor):
    """Hands every message to its act, and records start and stop."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        act: Act,
        peers: Mapping[str, Address],
        starts: Hook,
        stops: Hook,
    ) -> None:
        self.name = name
        self.journal = journal
        self.peers = peers
        self.context: Context
        self._act = act
        self._starts = starts
        self._stops = stops

    async def on_start(self, context: Context) -> None:
        """Record, then whatever the test wants."""
        self.context = context
        self.journal(f"start {self.name} {context.incarnation}")
        await self._starts(self)

    async def on_stop(self) -> None:
        """Record, then whatever the test wants."""
        self.journal(f"stop {self.name}")
        await self._stops(self)

    @handles(Do)
    async def do(self, request: Do) -> Done:
        """Act."""
        text = await self._act(self, request.text)
        return Done(text=text, incarnation=self.context.incarnation)

    @handles(DoSafely)
    async def do_safely(self, request: DoSafely) -> Done:
        """Act."""
        text = await self._act(self, request.text)
        return Done(text=text, incarnation=self.context.incarnation)

    @hears(Note)
    async def note(self, event: Note) -> None:
        """Act."""
        await self._act(self, event.text)


def worker(
    journal: Journal,
    name: str,
    act: Act = obey,
    *,
    asks: tuple[str, ...] = (),
    starts: Hook = nothing,
    stops: Hook = nothing,
    concurrency: int = 1,
    mailbox_size: int | None = None,
    strategy: Strategy = "one_for_one",
) -> ActorSpec:
    """The spec of a ``Worker``."""

    def build(peers: Peers) -> Actor:
        return Worker(name, journal, act, {peer: peers(peer) for peer in asks}, starts, stops)

    return ActorSpec(
        name=name,
        factory=build,
        asks=asks,
        concurrency=concurrency,
        mailbox_size=mailbox_size,
        strategy=strategy,
    )


SETTINGS = RuntimeSettings(
    mailbox_size=8,
    max_restarts=3,
    period_s=60.0,
    backoff_s=0.01,
    backoff_cap_s=10.0,
    drain_s=20.0,
    stats_s=1e6,
    ask_timeout_s=math.inf,
    inject_crash=(),
)


def settings(**changes: object) -> RuntimeSettings:
    """The tests' settings, with changes."""
    return msgspec.structs.replace(SETTINGS, **changes)


async def outcome(asked: Awaitable[Done], journal: Journal, label: str) -> None:
    """Await an ask and record how it ended."""
    try:
        done = await asked
    except Exception as exc:  # noqa: BLE001  # the outcome is what the test looks at
        journal(f"{label}: {type(exc).__name__}")
    else:
        journal(f"{label}: {done.text}/{done.incarnation}")
