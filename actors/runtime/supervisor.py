"""Starts the actors, keeps them alive, stops them in order.

    async with Supervisor(specs, settings, sink=sink, restored=states) as system:
        reply = await system.address("trainer").ask(Train())

Start order: dependencies first; stop order: the reverse. Leaving the block drains and
stops. Whatever the block does, a system that gave up raises ``GaveUp`` out of it: no
failure of an actor may end as if nothing had happened.

Only the supervisor knows that there are several actors; it must never look into one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import final

import anyio
import structlog

from actors.runtime.address import Address
from actors.runtime.cell import Cell
from actors.runtime.checkpoint import Checkpoints, CheckpointSink
from actors.runtime.control import Pong
from actors.runtime.envelope import Envelope
from actors.runtime.errors import (
    ActorDead,
    AskFailed,
    GaveUp,
    StartFailed,
    StopFailed,
    SystemFailed,
    WiringError,
    in_words,
)
from actors.runtime.faults import FaultPlan
from actors.runtime.ref import OUTSIDE, Ref
from actors.runtime.signals import watch_signals
from actors.runtime.stats import ActorStats, LoopLag
from actors.runtime.watch import log_stats, measure_lag, report_stats, watch_blocked
from actors.runtime.wiring import ActorSpec, Wiring
from protocol.settings import RuntimeSettings

__all__ = ["Supervisor"]

log = structlog.stdlib.get_logger("actors.runtime")

_LOOK_S = 0.25
"""How often a drain looks whether what is left can still finish."""


@final
class Supervisor:
    """The actors of one system; an async context manager, entered once.

    specs: in any order. settings: budgets and bounds.
    sink: where checkpoints go; restored: states by actor name, of the checkpoint to go on from.
    signals: obey SIGINT, SIGTERM and SIGUSR1 (main thread only).
    stop_s: bound of each ``on_stop``. blocked_s: a message that waits longer is reported.

    Raises WiringError for specs, fault entries or restored states that do not fit together.
    Entering raises StartFailed; leaving raises GaveUp or StopFailed. An exception of the block
    stops the system at once and passes unchanged.
    """

    def __init__(
        self,
        specs: Sequence[ActorSpec],
        settings: RuntimeSettings,
        *,
        sink: CheckpointSink | None = None,
        restored: Mapping[str, bytes] | None = None,
        signals: bool = False,
        stop_s: float = 5.0,
        blocked_s: float = 300.0,
    ) -> None:
        self._wiring = Wiring(specs)
        self._settings = settings
        self._signals = signals
        self._stop_s = stop_s
        self._blocked_s = blocked_s
        names = [spec.name for spec in self._wiring.start_order]
        self.faults = FaultPlan(settings.inject_crash, names)
        for name in restored or {}:
            if name not in names:
                raise WiringError(f"the checkpoint has a state for {name}, which does not exist")
        self._checkpoints_of = (sink, restored or {})
        self._cells: dict[str, Cell] = {}
        self._started: list[Cell] = []
        self._lag = LoopLag()
        self._draining = False
        self._stop_now = False
        self._asked_twice = False
        self._fatal: SystemFailed | None = None
        self._running: AbstractAsyncContextManager[None] | None = None

    # -- the block ----------------------------------------------------------------------

    async def __aenter__(self) -> Supervisor:
        if self._running is not None:
            raise RuntimeError("a supervisor runs once")
        self._running = self._run()
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._running is not None, "entered before it is left"
        return await self._running.__aexit__(kind, exc, traceback)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        # Made here and not in __init__: they belong to the running event loop.
        self._checkpoints = Checkpoints(*self._checkpoints_of)
        self._moved = anyio.Event()
        self._stopped = anyio.Event()
        for spec in self._wiring.start_order:
            self._cells[spec.name] = Cell(spec, self._settings, self, stop_s=self._stop_s)
        error: BaseException | None = None
        cut_short = False
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._keep, name="supervisor")
                try:
                    await self._start()
                    yield
                except anyio.get_cancelled_exc_class():
                    cut_short = True
                    raise  # the supervisor's own task is cancelled too, and stops everything
                except BaseException as exc:  # noqa: BLE001  # raised again below, not in a group
                    error = exc
                    self._stop_now = True
                self._drain("the work is done" if error is None else repr(error))
                await self._stopped.wait()
                tasks.cancel_scope.cancel()
        finally:
            # Also in place of a cancellation: nobody may go on as if the system had worked.
            if self._fatal is not None:
                if error is not None and not isinstance(error, (AskFailed, SystemFailed)):
                    self._fatal.add_note(f"beside it the block raised {error!r}")
                raise self._fatal
            if error is not None:
                raise error
        if cut_short:
            # Nobody outside cancelled the block, or this line would not be reached.
            raise SystemFailed("supervisor", "its tasks were cancelled from within")
        self._check_stops()

    async def _start(self) -> None:
        if self._signals:
            await self._tasks.start(watch_signals, self, name="signals")
        cells = list(self._cells.values())
        every_s = self._settings.stats_s
        self._tasks.start_soon(measure_lag, self._lag, every_s, name="lag")
        self._tasks.start_soon(report_stats, cells, self._lag, every_s, name="stats")
        self._tasks.start_soon(watch_blocked, cells, self._blocked_s, name="watch")
        for cell in cells:
            if self._draining:
                raise ActorDead(cell.name, "stopped before it was started")
            self._started.append(cell)
            self._tasks.start_soon(cell.run, name=f"cell:{cell.name}")
            if await cell.wait_started():
                continue
            if cell.start_failure is not None:
                self._fatal = StartFailed(cell.name, f"on_start raised {cell.start_failure!r}")
                self._fatal.__cause__ = cell.start_failure
            raise ActorDead(cell.name, "it did not start")

    def _check_stops(self) -> None:
        for cell in reversed(self._started):
            if cell.stop_failure is not None:
                detail = f"on_stop: {cell.stop_failure!r}"
                raise StopFailed(cell.name, detail) from cell.stop_failure

    # -- for the composition root -------------------------------------------------------

    @property
    def start_order(self) -> tuple[str, ...]:
        """The actors' names, dependencies first."""
        return tuple(spec.name for spec in self._wiring.start_order)

    @property
    def draining(self) -> bool:
        """A stop was asked for, or is under way."""
        return self._draining

    @property
    def cut_short(self) -> bool:
        """A second stop was asked for, so that nothing was waited for."""
        return self._asked_twice

    @property
    def pending_asks(self) -> int:
        """Asks that have not ended, all actors together."""
        return sum(cell.pending_asks for cell in self._cells.values())

    def address(self, name: str) -> Address:
        """An address for use from outside; refused once the system drains.

        Raises WiringError if there is no such actor. Only inside the block.
        """
        self._wiring.check_known(name)
        return Ref(OUTSIDE, self._cells[name], self._settings.ask_timeout_s)

    def stats(self) -> tuple[ActorStats, ...]:
        """The numbers of this moment, in start order."""
        return tuple(cell.stats() for cell in self._cells.values())

    async def ping(self, name: str) -> Pong:
        """Ask an actor's control lane for a sign of life. Raises WiringError, ActorDead."""
        self._wiring.check_known(name)
        return await self._cells[name].ping()

    def request_stop(self, reason: str) -> None:
        """The first time: drain. The second: stop at once. Returns immediately."""
        if self._draining:
            self._stop_now = self._asked_twice = True
        self._drain(reason)

    async def wait_stopped(self) -> None:
        """Wait until every actor has stopped."""
        await self._stopped.wait()

    # -- for the cells ------------------------------------------------------------------

    def connect(self, asker: str, target: str) -> Address:
        """The address that ``asker`` uses. Raises WiringError unless the edge is declared."""
        self._wiring.check_edge(asker, target)
        return Ref(asker, self._cells[target], self._settings.ask_timeout_s)

    def restored(self, name: str) -> bytes | None:
        """The actor's state of the last checkpoint."""
        return self._checkpoints.state_of(name)

    async def checkpoint(self, label: str) -> None:
        """See ``Context.checkpoint``."""
        await self._checkpoints.take(label, list(self._cells.values()))

    def changed(self) -> None:
        """Wake whoever waits for quiet: nobody does before the drain, which begins with a call."""
        if not self._draining:
            return
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def gave_up(self, cell: Cell, cause: Exception) -> None:
        """A restart budget is spent: stop everything, in order."""
        settings = self._settings
        detail = f"more than {settings.max_restarts} crashes within {settings.period_s} s"
        log.error(
            "runtime.gave_up",
            actor=cell.name,
            detail=detail,
            last=repr(cause),
            next="everything stops in order; the last checkpoint is whole",
        )
        if self._fatal is None:
            self._fatal = GaveUp(cell.name, f"{detail}; the last: {in_words(cause)}")
            self._fatal.__cause__ = cause
        self._stop_now = True
        self._drain(f"{cell.name} gave up")

    async def hold_later(self, cell: Cell, culprits: frozenset[Envelope]) -> None:
        """Take down, last started first, what was started after ``cell``."""
        for later in reversed(self._after(cell)):
            await later.hold(cell.name, culprits)

    def release_later(self, cell: Cell) -> None:
        """Let them come up again."""
        for later in self._after(cell):
            later.release(cell.name)

    def _after(self, cell: Cell) -> list[Cell]:
        cells = list(self._cells.values())
        return cells[cells.index(cell) + 1 :]

    # -- stopping -----------------------------------------------------------------------

    def _drain(self, reason: str) -> None:
        if not self._draining:
            self._draining = True
            in_hand = sum(len(cell.in_flight) for cell in self._cells.values())
            log.info(
                "runtime.draining",
                reason=reason,
                in_hand=in_hand,
                drain_s=self._settings.drain_s,
                next="it may finish within drain_s; a second signal stops at once"
                if in_hand
                else "all actors stop",
            )
        self.changed()

    async def _keep(self) -> None:
        """The supervisor's own task: whichever way it ends, every actor is stopped in order."""
        try:
            await self._until(lambda: self._draining)
            with anyio.move_on_after(self._settings.drain_s):
                await self._drained()
        finally:
            self._draining = True
            with anyio.CancelScope(shield=True):
                for cell in reversed(self._started):
                    await cell.stop()
                log_stats(self._started, self._lag)
                log.info("runtime.stopped")
            self._stopped.set()
            if self._fatal is not None:
                self._tasks.cancel_scope.cancel()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._moved.wait()

    async def _drained(self) -> None:
        """Wait until nothing is in hand, or nothing that could finish."""
        while not (self._stop_now or self._quiet()):
            with anyio.move_on_after(_LOOK_S):  # what stalls says so to nobody
                await self._moved.wait()

    def _quiet(self) -> bool:
        cells = list(self._cells.values())
        stalled = frozenset[Envelope]()
        for cell in cells:  # whoever is asked comes before those that ask
            stalled = cell.stalled(stalled)
        if not all(cell.idle_but_for(stalled) for cell in cells):
            return False
        if stalled:
            log.warning(
                "runtime.stalled",
                in_hand=sum(len(cell.in_flight) for cell in cells),
                next="none of it can finish: it waits for what does not come; all actors stop now",
            )
        return True
