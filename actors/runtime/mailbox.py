"""Where an actor's messages wait.

Bounded: when ``size`` messages wait, the sender waits too, in order of arrival. This is
the only back-pressure of the system, and there is no queue without a bound.
Two lanes: the runtime's own control messages never queue behind work.

The mailbox belongs to the supervisor's cell and outlives every incarnation of its actor.
It must never drop an ask without an answer: what is closed or expired is answered.

Not an anyio memory object stream, because a message of a crashed incarnation goes back to
the *head*, a withdrawn ask leaves from the *middle*, and the age of the oldest is shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar, final

import anyio
import anyio.lowlevel

from actors.runtime.envelope import Envelope
from actors.runtime.errors import ActorDead, AskTimeout

__all__ = ["CONTROL_SIZE", "Mailbox"]

C = TypeVar("C")

CONTROL_SIZE = 16
"""Most control messages that may wait; only the supervisor writes there, a few at a time."""


class _Sender:
    """A sender in front of a full mailbox."""

    __slots__ = ("admitted", "envelope", "woken")

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        self.admitted = False
        self.woken = anyio.Event()


@final
class Mailbox(Generic[C]):
    """Two lanes in front of one actor; ``C`` is the type of the control messages.

    name: the actor's. size: most messages that wait in the work lane.
    changed: called whenever a message left without having been handled.
    """

    def __init__(self, name: str, size: int, changed: Callable[[], None]) -> None:
        self.name = name
        self.size = size
        self.high_water = 0
        self.expired = 0
        self._changed = changed
        self._work: deque[Envelope] = deque()
        self._returned: deque[Envelope] = deque()
        self._senders: deque[_Sender] = deque()
        # Invariant: what waits in any of the three. Nearly every message that is discarded was
        # handled long ago, and must not be looked for among the thousands that may wait.
        self._waiting: set[Envelope] = set()
        self._control: deque[C] = deque()
        self._work_arrived = anyio.Event()
        self._control_arrived = anyio.Event()
        self._closed = False

    def __repr__(self) -> str:
        return f"<mailbox of {self.name}: {self.depth} of {self.size}>"

    # -- what can be seen ---------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """The actor is dead."""
        return self._closed

    @property
    def depth(self) -> int:
        """Messages that wait; those handed back by a crash come on top of ``size``."""
        return len(self._returned) + len(self._work)

    @property
    def empty(self) -> bool:
        """Nothing waits, inside or in front."""
        return not (self._work or self._returned or self._senders)

    @property
    def waiting(self) -> frozenset[Envelope]:
        """All that waits, inside and in front."""
        return frozenset(self._waiting)

    @property
    def senders(self) -> tuple[str, ...]:
        """Who waits in front of the full mailbox, in order."""
        return tuple(sender.envelope.sender for sender in self._senders)

    @property
    def oldest(self) -> Envelope | None:
        """The message that has waited longest, inside or in front; None: nothing waits."""
        waiting = [*self._returned, *self._work, *(sender.envelope for sender in self._senders)]
        return min(waiting, key=lambda envelope: envelope.sent_at, default=None)

    # -- the work lane ------------------------------------------------------------------

    async def put(self, envelope: Envelope) -> None:
        """Queue a message; waits while the lane is full.

        Cancelled while it waits, the message is withdrawn. Raises ActorDead if the mailbox
        is closed, before or while waiting.
        """
        await anyio.lowlevel.checkpoint()
        if self._closed:
            raise self._dead()
        if len(self._work) < self.size and not self._senders:
            self._admit(envelope)
            return
        sender = _Sender(envelope)
        self._senders.append(sender)
        self._waiting.add(envelope)
        try:
            await sender.woken.wait()
        except BaseException:
            self.discard(envelope)
            raise
        if not sender.admitted:
            raise self._dead()

    async def take(self) -> Envelope:
        """The next message that somebody still wants; waits while there is none.

        An ask whose deadline has passed is answered AskTimeout here and not handed out.
        """
        while True:
            envelope = self._pop()
            if envelope is None:
                self._work_arrived = anyio.Event()
                await self._work_arrived.wait()
            elif envelope.unwanted:
                self._changed()
            elif envelope.deadline <= anyio.current_time():
                self.expired += 1
                envelope.fail(AskTimeout(self.name, f"{envelope.kind} expired in the mailbox"))
                self._changed()
            else:
                return envelope

    def put_back(self, envelopes: list[Envelope]) -> None:
        """Return what a dead incarnation had in hand to the head, in the given order."""
        self._returned.extendleft(reversed(envelopes))
        self._waiting.update(envelopes)
        if envelopes:
            self._work_arrived.set()

    def discard(self, envelope: Envelope) -> None:
        """Take a message out, wherever it waits; no effect if it does not."""
        if envelope not in self._waiting:
            return
        self._waiting.remove(envelope)
        for lane in (self._work, self._returned):
            if envelope in lane:
                lane.remove(envelope)
        for sender in [one for one in self._senders if one.envelope is envelope]:
            self._senders.remove(sender)
        self._let_in()
        self._changed()

    def close(self) -> None:
        """Answer everything that waits with ActorDead, and every later sender too."""
        self._closed = True
        while (envelope := self._pop()) is not None:
            envelope.fail(self._dead())
        while self._senders:
            self._senders.popleft().woken.set()
        self._waiting.clear()
        self._changed()

    def _pop(self) -> Envelope | None:
        if self._returned:
            envelope = self._returned.popleft()
        elif self._work:
            envelope = self._work.popleft()
            self._let_in()
        else:
            return None
        self._waiting.discard(envelope)
        return envelope

    def _let_in(self) -> None:
        while self._senders and len(self._work) < self.size and not self._closed:
            sender = self._senders.popleft()
            sender.admitted = True
            self._admit(sender.envelope)
            sender.woken.set()

    def _admit(self, envelope: Envelope) -> None:
        self._work.append(envelope)
        self._waiting.add(envelope)
        self.high_water = max(self.high_water, len(self._work))
        self._work_arrived.set()

    def _dead(self) -> ActorDead:
        return ActorDead(self.name, "the actor has stopped")

    # -- the control lane ---------------------------------------------------------------

    def post(self, control: C) -> None:
        """Queue a control message. Raises RuntimeError when the lane overflows: a bug."""
        if len(self._control) >= CONTROL_SIZE:
            raise RuntimeError(f"{self.name}: {CONTROL_SIZE} control messages are waiting")
        self._control.append(control)
        self._control_arrived.set()

    async def take_control(self) -> C:
        """The next control message; waits while there is none."""
        while not self._control:
            self._control_arrived = anyio.Event()
            await self._control_arrived.wait()
        return self._control.popleft()

    def take_all_control(self) -> list[C]:
        """Every waiting control message, at once: for the end of the cell."""
        waiting = list(self._control)
        self._control.clear()
        return waiting
