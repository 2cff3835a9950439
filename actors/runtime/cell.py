"""What stays of an actor while its incarnations come and go.

The cell owns the mailbox, the restart budget and the counters, serves the control lane,
and lets one incarnation follow the other. It knows nothing of other actors; what a crash
means for them is the supervisor's to say.
"""

from __future__ import annotations

from typing import Protocol, final

import anyio
import structlog

from actors.runtime.actor import Actor, handler_names, is_stateful
from actors.runtime.address import Address
from actors.runtime.aftermath import settle
from actors.runtime.control import Control, Ping, Pong, Snapshot, State, Stop
from actors.runtime.envelope import LINEAGE, Envelope, Lineage
from actors.runtime.errors import ActorCrashed, ActorDead, WiringError, in_words
from actors.runtime.faults import FaultPlan
from actors.runtime.incarnation import Crash, Home, Incarnation
from actors.runtime.mailbox import Mailbox
from actors.runtime.ref import OUTSIDE
from actors.runtime.restart import RestartBudget, pause_s
from actors.runtime.stats import ActorStats, Tally
from actors.runtime.wiring import ActorSpec
from protocol.base import Message
from protocol.settings import RuntimeSettings

__all__ = ["Cell", "House"]

log = structlog.stdlib.get_logger("actors.runtime")


class House(Home, Protocol):
    """What a cell needs of the supervisor."""

    @property
    def faults(self) -> FaultPlan:
        """The testing switch."""
        ...

    def connect(self, asker: str, target: str) -> Address:
        """An address along a declared edge."""
        ...

    def restored(self, name: str) -> bytes | None:
        """The actor's state of the last checkpoint."""
        ...

    def gave_up(self, cell: Cell, cause: Exception) -> None:
        """The restart budget of a cell is spent."""
        ...

    async def hold_later(self, cell: Cell, culprits: frozenset[Envelope]) -> None:
        """End every actor started after this one and keep them down (rest_for_one)."""
        ...

    def release_later(self, cell: Cell) -> None:
        """Let them be born again."""
        ...


@final
class Cell:
    """One actor's place in the system. ``stop_s``: the bound of its ``on_stop``."""

    def __init__(
        self, spec: ActorSpec, settings: RuntimeSettings, house: House, *, stop_s: float
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.stateful = False
        self.mailbox: Mailbox[Control] = Mailbox(
            spec.name, spec.mailbox_size or settings.mailbox_size, house.changed
        )
        self.tally = Tally()
        self.start_failure: Exception | None = None
        self.stop_failure: Exception | None = None
        self.done = anyio.Event()
        self._settings = settings
        self._log = log.bind(actor=spec.name)
        self._house = house
        self._stop_s = stop_s
        self._budget = RestartBudget(settings.max_restarts, settings.period_s)
        self._accepts: frozenset[type[Message]] | None = None
        self._pending: dict[Envelope, None] = {}
        self._incarnation: Incarnation | None = None
        self._number = 0
        self._ever_up = False
        self._stopping = False
        self._held_by: set[str] = set()
        self._culprits: frozenset[Envelope] = frozenset()
        self._moved = anyio.Event()
        self._snapshots: list[Snapshot] = []

    def __repr__(self) -> str:
        return f"<cell {self.name}: {self.state}>"

    # -- what can be seen ---------------------------------------------------------------

    @property
    def state(self) -> State:
        """Where the actor's life stands."""
        if self.done.is_set():
            return "dead"
        if self._stopping:
            return "stopping"
        if self._incarnation is not None and self._incarnation.up:
            return "up"
        return "restarting" if self._ever_up else "starting"

    def stalled(self, below: frozenset[Envelope]) -> frozenset[Envelope]:
        """What waits for what does not come, with all that it was asked for; ``below`` included.

        What waits behind it is held up too, where nothing can begin beside it.
        """
        found = below | (frozenset() if self._incarnation is None else self._incarnation.stalled())
        if len(self.in_flight) < self.spec.concurrency or not self.in_flight.keys() <= found:
            return found
        return found.union(*(envelope.with_askers() for envelope in self.mailbox.waiting))

    def idle_but_for(self, stalled: frozenset[Envelope]) -> bool:
        """Nothing else is in hand, and nothing else waits."""
        return self.in_flight.keys() <= stalled and self.mailbox.waiting <= stalled

    @property
    def in_flight(self) -> dict[Envelope, float]:
        """The messages in the hands of the incarnation, and when each was taken."""
        return {} if self._incarnation is None else self._incarnation.in_flight

    @property
    def pending_asks(self) -> int:
        """Asks that have not ended."""
        return len(self._pending)

    def stats(self) -> ActorStats:
        """The numbers of this moment."""
        now = anyio.current_time()
        oldest, in_flight, tally = self.mailbox.oldest, self.in_flight, self.tally
        return ActorStats(
            actor=self.name,
            state=self.state,
            incarnation=self._number,
            depth=self.mailbox.depth,
            size=self.mailbox.size,
            high_water=self.mailbox.high_water,
            senders_waiting=len(self.mailbox.senders),
            oldest_s=0.0 if oldest is None else now - oldest.sent_at,
            in_flight=len(in_flight),
            running_s=max((now - begun for begun in in_flight.values()), default=0.0),
            pending_asks=self.pending_asks,
            handled=tally.handled,
            failed=tally.failed,
            abandoned=tally.abandoned + self.mailbox.expired,
            crashes=tally.crashes,
            restarts=tally.restarts,
            redelivered=tally.redelivered,
            wait_s=tally.wait_s,
            wait_s_max=tally.wait_s_max,
            handler_s=tally.handler_s,
            handler_s_max=tally.handler_s_max,
        )

    # -- for references -----------------------------------------------------------------

    def admit(self, kind: type[Message], sender: str) -> None:
        """Raise ActorDead for a dead actor or, from outside, a draining system.

        Raises WiringError for a message that the actor has no handler for.
        """
        if self.mailbox.closed:
            raise ActorDead(self.name, "the actor has stopped")
        if sender == OUTSIDE and self._house.draining:
            raise ActorDead(self.name, "the system is stopping and takes nothing new")
        if self._accepts is not None and kind not in self._accepts:
            raise WiringError(f"{self.name} has no handler for {kind.__name__}, sent by {sender}")

    def opened(self, envelope: Envelope) -> None:
        """An ask begins."""
        self._pending[envelope] = None

    def closed(self, envelope: Envelope) -> None:
        """The ask has ended: nothing of it stays."""
        del self._pending[envelope]
        self.mailbox.discard(envelope)

    async def deliver(self, envelope: Envelope) -> None:
        """Queue a message; waits while the mailbox is full."""
        await self.mailbox.put(envelope)

    # -- for the supervisor -------------------------------------------------------------

    async def run(self) -> None:
        """The cell's task. Shielded: it ends by ``stop`` or by giving up, always in order."""
        structlog.contextvars.bind_contextvars(actor=self.name)
        LINEAGE.set(Lineage((self.name,)))
        try:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._serve_control, name=f"{self.name}:control")
                    await self._live()
                    tasks.cancel_scope.cancel()
        finally:
            self._die()

    async def wait_started(self) -> bool:
        """Wait for the first ``on_start``; False: the actor died before it was through."""
        while not (self._ever_up or self.done.is_set()):
            await self._moved.wait()
        return self._ever_up

    async def stop(self) -> None:
        """Have the actor stopped ahead of all waiting work, and wait until it is."""
        if not self.done.is_set():
            self.mailbox.post(Stop())
        await self.done.wait()

    async def ping(self) -> Pong:
        """Ask the control lane for a sign of life. Raises ActorDead."""
        ping = Ping()
        self._post(ping)
        return await ping.reply.get()

    def request_snapshot(self) -> Snapshot:
        """Have the state taken as soon as the actor is up."""
        snapshot = Snapshot()
        self._post(snapshot)
        return snapshot

    async def hold(self, by: str, culprits: frozenset[Envelope]) -> None:
        """End the incarnation, if there is one, and wait; no other is born until ``release``.

        culprits: the messages that crashed ``by``; one of them may be in hand here.
        """
        self._held_by.add(by)
        self._culprits |= culprits
        while self._incarnation is not None:
            self._incarnation.end()
            await self._moved.wait()

    def release(self, by: str) -> None:
        """Undo ``hold``."""
        self._held_by.discard(by)
        self._move()

    # -- the control lane ---------------------------------------------------------------

    def _post(self, control: Snapshot | Ping) -> None:
        if self.mailbox.closed:
            control.reply.fail(ActorDead(self.name, "the actor has stopped"))
        else:
            self.mailbox.post(control)

    async def _serve_control(self) -> None:
        while True:
            self._serve(await self.mailbox.take_control())

    def _serve(self, control: Control) -> None:
        match control:
            case Stop():
                self._stopping = True
                if self._incarnation is not None:
                    self._incarnation.end()
                self._move()
                self._serve_snapshots()
            case Snapshot():
                self._snapshots.append(control)
                self._serve_snapshots()
            case Ping():
                control.reply.succeed(
                    Pong(actor=self.name, state=self.state, incarnation=self._number)
                )

    def _serve_snapshots(self) -> None:
        """Answer what waits for a snapshot, unless an incarnation has yet to come up."""
        if self.state not in ("up", "stopping", "dead"):
            return
        waiting, self._snapshots = self._snapshots, []
        for snapshot in waiting:
            if self._stopping or self._incarnation is None:
                snapshot.reply.fail(ActorDead(self.name, "the actor has stopped"))
                continue
            try:
                snapshot.reply.succeed(self._incarnation.snapshot())
            except ActorCrashed as exc:
                snapshot.reply.fail(exc)

    # -- lives --------------------------------------------------------------------------

    async def _live(self) -> None:
        while await self._may_be_born():
            self._number += 1
            incarnation = self._incarnation = self._conceive()
            try:
                await incarnation.run()
            finally:
                # Also when the event loop dies and cancels this very task, or an exit passes.
                crash = incarnation.crash
                fatal = crash is not None and self._is_fatal(crash)
                self._settle(incarnation, dead=fatal or self._stopping)
                await incarnation.finish(self._stop_s)
                self.stop_failure = incarnation.stop_failure
                self._incarnation = None
                self._move()
                self._house.changed()
            if fatal:
                return
            if crash is not None:
                await self._recover(crash)

    async def _may_be_born(self) -> bool:
        while self._held_by and not self._stopping:
            await self._moved.wait()
        return not self._stopping

    def _conceive(self) -> Incarnation:
        return Incarnation(
            self.name,
            self._number,
            build=self._build,
            concurrency=self.spec.concurrency,
            restored=self._house.restored(self.name),
            mailbox=self.mailbox,
            tally=self.tally,
            faults=self._house.faults,
            home=self._house,
            on_up=self._on_up,
        )

    def _build(self) -> Actor:
        actor = self.spec.factory(lambda peer: self._house.connect(self.name, peer))
        self.stateful = is_stateful(type(actor))
        self._accepts = frozenset(handler_names(type(actor)))
        return actor

    def _on_up(self) -> None:
        self._log.info("actor.started", incarnation=self._number)
        self._ever_up = True
        self._move()
        self._serve_snapshots()
        self._house.release_later(self)

    def _is_fatal(self, crash: Crash) -> bool:
        """Whether no other incarnation may follow; the supervisor is then told."""
        self.tally.crashes += 1
        if self._stopping:
            return False
        if not self._ever_up:
            self.start_failure = crash.cause
            return True
        if self._budget.allows(anyio.current_time()):
            return False
        self._house.gave_up(self, crash.cause)
        return True

    async def _recover(self, crash: Crash) -> None:
        """Between a crash and the next birth."""
        if self._stopping:
            return
        if self.spec.strategy == "rest_for_one":
            await self._house.hold_later(self, crash.culprits)
        self.tally.restarts += 1
        pause = pause_s(
            self.name,
            self.tally.restarts,
            self._budget.recent,
            base_s=self._settings.backoff_s,
            cap_s=self._settings.backoff_cap_s,
        )
        self._log.warning(
            "actor.restarting",
            restart=self.tally.restarts,
            crashes=self._budget.used,
            pause_s=round(pause, 3),
            next="begins anew, with what waits in its mailbox",
        )
        with anyio.move_on_after(pause):
            while not self._stopping:
                await self._moved.wait()

    def _settle(self, incarnation: Incarnation, *, dead: bool) -> None:
        """Leave nothing in the hands of an incarnation that has ended."""
        crash = incarnation.crash
        culprits = self._culprits if crash is None else self._culprits | crash.culprits
        why = "the actor was restarted" if crash is None else f"crashed: {in_words(crash.cause)}"
        handed_back = settle(self.name, incarnation.in_flight, culprits, why=why, dead=dead)
        self._culprits = frozenset()
        incarnation.in_flight.clear()
        self.tally.redelivered += len(handed_back)
        self.mailbox.put_back(handed_back)

    def _move(self) -> None:
        """Wake whoever waits for a change of stopping, held or incarnation."""
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def _die(self) -> None:
        """Nothing comes after this: everything that waits is answered."""
        self.done.set()
        self._move()
        for control in self.mailbox.take_all_control():
            if not isinstance(control, Stop):
                control.reply.fail(ActorDead(self.name, "the actor has stopped"))
        self._serve_snapshots()
        self.mailbox.close()
        self._house.changed()
        self._log.info("actor.stopped", incarnation=self._number)
