"""One life of an actor: from its factory to ``on_stop``.

Runs the handlers in a task group of its own, at most ``concurrency`` at once. It reports
that it crashed; what then becomes of messages, restarts and the rest of the system is the
cell's and the supervisor's to say. No exception of an actor may leave it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Protocol, final

import anyio
import anyio.lowlevel
import structlog
from anyio.abc import TaskGroup

from actors.runtime.actor import Actor, handler_names
from actors.runtime.control import Control
from actors.runtime.envelope import LINEAGE, Envelope, Lineage
from actors.runtime.errors import ActorCrashed, AskFailed, AskTimeout
from actors.runtime.faults import FaultPlan
from actors.runtime.mailbox import Mailbox
from actors.runtime.stats import Tally
from protocol.base import Message

__all__ = ["Crash", "Home", "Incarnation", "ask_failure"]

log = structlog.stdlib.get_logger("actors.runtime")


class Crash(NamedTuple):
    """An exception that ended an incarnation, and the message in hand, if it was a handler's."""

    cause: Exception
    envelope: Envelope | None

    @property
    def culprits(self) -> frozenset[Envelope]:
        """The message in hand and those that it was asked for."""
        return frozenset() if self.envelope is None else self.envelope.with_askers()


class Home(Protocol):
    """What an incarnation needs of the system around it."""

    @property
    def draining(self) -> bool:
        """A stop was asked for."""
        ...

    def changed(self) -> None:
        """Something ended: whoever waits for quiet looks again."""
        ...

    async def checkpoint(self, label: str) -> None:
        """See ``Context.checkpoint``."""
        ...


@final
class _Context:
    """The ``Context`` of one incarnation."""

    def __init__(
        self, name: str, incarnation: int, restored: bytes | None, tasks: TaskGroup, home: Home
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.restored = restored
        self.tasks = tasks
        self.log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(
            f"actors.{name}", actor=name
        )
        self._home = home

    @property
    def draining(self) -> bool:
        return self._home.draining

    async def checkpoint(self, label: str) -> None:
        await self._home.checkpoint(label)


@final
class Incarnation:
    """A built actor with its running handlers.

    number: 1 for the first. build: makes the actor. restored: its state of the last
    checkpoint. on_up: called once ``on_start`` is through.
    """

    def __init__(
        self,
        name: str,
        number: int,
        *,
        build: Callable[[], Actor],
        concurrency: int,
        restored: bytes | None,
        mailbox: Mailbox[Control],
        tally: Tally,
        faults: FaultPlan,
        home: Home,
        on_up: Callable[[], None],
    ) -> None:
        self.name = name
        self.number = number
        self.up = False
        self.crash: Crash | None = None
        self.stop_failure: Exception | None = None
        self.actor: Actor | None = None
        # Invariant: an envelope is here from the moment it left the mailbox until it is
        # answered or handed back. What is left after run() is the cell's to settle.
        self.in_flight: dict[Envelope, float] = {}
        self._build = build
        self._restored = restored
        self._mailbox = mailbox
        self._tally = tally
        self._faults = faults
        self._home = home
        self._on_up = on_up
        self._handlers: dict[type[Message], Callable[[Message], Awaitable[object]]] = {}
        self._scope = anyio.CancelScope()
        # Without a checkpoint of its own: the loop below waits for a message in any case, and
        # can begin no more of them at a time than there are slots.
        self._slots = anyio.Semaphore(concurrency, fast_acquire=True)
        self._ending = False
        self._log = log.bind(actor=name, incarnation=number)

    def end(self) -> None:
        """Cancel handlers and tasks; not a crash."""
        self._ending = True
        self._scope.cancel()

    async def run(self) -> None:
        """Live until ended or crashed; afterwards ``crash`` says which."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    if await self._start(tasks):
                        await self._work(tasks)
        except Exception as exc:  # noqa: BLE001  # a task of the actor's own: a crash
            self.crashed(_only(exc), None)
        if self.crash is None and not self._ending:
            # A library cancelled a task of the actor's own, and with it the whole group.
            self.crashed(RuntimeError("a task of the actor was cancelled from within"), None)

    async def finish(self, within_s: float) -> None:
        """Let the actor release what it holds, shielded, for at most ``within_s`` seconds."""
        if self.actor is None:
            return
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + within_s) as scope:
            # An event loop that dies cancels every task past all shields; what is due of that is
            # taken here, where nothing is lost by it, and not at the first await of on_stop.
            with suppress(anyio.get_cancelled_exc_class()):
                await anyio.lowlevel.checkpoint()
            try:
                await self.actor.on_stop()
            except Exception as exc:  # noqa: BLE001  # kept, and raised by the supervisor
                self.stop_failure = exc
        if scope.cancelled_caught:
            self.stop_failure = TimeoutError(f"on_stop took longer than {within_s} s")
        if self.stop_failure is not None:
            self._log.error("actor.stop_failed", exc_info=self.stop_failure)

    def snapshot(self) -> bytes | None:
        """The actor's state. Raises ActorCrashed if it cannot give it: the incarnation ends."""
        assert self.actor is not None, "asked only while up"
        try:
            return self.actor.snapshot()
        except Exception as exc:
            self.crashed(exc, None)
            raise ActorCrashed(self.name, f"snapshot raised {exc!r}") from exc

    def stalled(self) -> frozenset[Envelope]:
        """What is in hand and waits for what does not come, with those that asked for it."""
        if self.actor is None or not self.in_flight:
            return frozenset()
        named = {id(message) for message in self.actor.stalled()}
        held = [envelope for envelope in self.in_flight if id(envelope.message) in named]
        return frozenset().union(*(envelope.with_askers() for envelope in held))

    def crashed(self, cause: Exception, envelope: Envelope | None) -> None:
        """The first exception is the crash; what others raise while they are cancelled is not."""
        request = None if envelope is None else envelope.kind
        if self.crash is not None or self._ending:
            self._log.warning("actor.cleanup_failed", request=request, exc_info=cause)
            return
        self.crash = Crash(cause, envelope)
        self._log.error("actor.crashed", request=request, up=self.up, exc_info=cause)
        self._scope.cancel()

    async def _start(self, tasks: TaskGroup) -> bool:
        context = _Context(self.name, self.number, self._restored, tasks, self._home)
        try:
            self.actor = self._build()
            for kind, method in handler_names(type(self.actor)).items():
                self._handlers[kind] = getattr(self.actor, method)
            await self.actor.on_start(context)
        except Exception as exc:  # noqa: BLE001  # logged as the crash that it is
            self.crashed(_only(exc), None)
            return False
        self.up = True
        self._on_up()
        return True

    async def _work(self, tasks: TaskGroup) -> None:
        while True:
            await self._slots.acquire()
            envelope = await self._mailbox.take()
            now = anyio.current_time()
            self._tally.waited(now - envelope.sent_at)
            self.in_flight[envelope] = now
            tasks.start_soon(
                self._handle, envelope, tasks, name=f"{self.name}#{self.number}:{envelope.kind}"
            )

    async def _handle(self, envelope: Envelope, tasks: TaskGroup) -> None:
        begun = self.in_flight[envelope]
        # This task has its own copy of the context: nothing set here leaks.
        LINEAGE.set(Lineage((*envelope.chain, self.name), envelope.deadline, envelope))
        structlog.contextvars.bind_contextvars(**dict(envelope.message.scope.fields()))
        try:
            await self._answer(envelope)
        except anyio.get_cancelled_exc_class():
            if self._scope.cancel_called or tasks.cancel_scope.cancel_called:
                raise
            # A library cancelled the task itself, not one of our scopes. It must not reach
            # the task group, which would take it for its own end.
            envelope.fail(ActorCrashed(self.name, f"{envelope.kind}: cancelled from within"))
            del self.in_flight[envelope]
        finally:
            self._tally.ran(anyio.current_time() - begun)
            self._slots.release()
            self._home.changed()

    async def _answer(self, envelope: Envelope) -> None:
        """Handle a message; returns once it is settled or is recorded as the crash's own."""
        try:
            with envelope.run() as scope:
                self._faults.begin(self.name)
                envelope.succeed(await self._handlers[type(envelope.message)](envelope.message))
        except Exception as exc:  # noqa: BLE001  # passed on to the asker, or a crash
            failure = ask_failure(exc)
            if failure is None:
                self.crashed(exc, envelope)
                return
            self._tally.failed += 1
            if envelope.reply is None:
                self._log.warning("actor.event_failed", request=envelope.kind, error=str(failure))
            envelope.fail(failure)
        else:
            if scope.cancelled_caught:
                self._tally.abandoned += 1
                envelope.fail(AskTimeout(self.name, f"{envelope.kind}: the deadline passed"))
            else:
                self._tally.handled += 1
        del self.in_flight[envelope]


def ask_failure(exc: Exception) -> AskFailed | None:
    """The failed ask that an exception stands for; None: it is a crash.

    A handler that asks several peers in a task group fails with an exception group; if
    nothing but failed asks is in it, the first of them is the failure.
    """
    if isinstance(exc, AskFailed):
        return exc
    if isinstance(exc, ExceptionGroup):
        failures, rest = exc.split(AskFailed)
        if failures is not None and rest is None:
            first: BaseException = failures
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            assert isinstance(first, AskFailed), "what split selects"
            return first
    return None


def _only(exc: Exception) -> Exception:
    """The one exception inside nested groups of one, for a log that can be read."""
    while isinstance(exc, ExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
