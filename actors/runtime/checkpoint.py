"""One consistent set of snapshots, written by whoever the composition root names.

Holds the states of the last checkpoint in memory too: they are what a restarted
incarnation is given. They change only after the writing has succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import anyio
import structlog

from actors.runtime.control import Snapshot
from actors.runtime.errors import WiringError

__all__ = ["CheckpointSink", "Checkpoints", "Snapshotted"]

log = structlog.stdlib.get_logger("actors.runtime")


class CheckpointSink(Protocol):
    """Where checkpoints go."""

    async def write(self, label: str, states: Mapping[str, bytes]) -> None:
        """Replace the checkpoint, atomically: states by actor name, each JSON bytes.

        Never cancelled. Raises OSError if it cannot; the old checkpoint is then untouched.
        """
        ...


class Snapshotted(Protocol):
    """What a checkpoint needs of a cell."""

    @property
    def name(self) -> str:
        """The actor's name."""
        ...

    @property
    def stateful(self) -> bool:
        """Whether it gives snapshots."""
        ...

    def request_snapshot(self) -> Snapshot:
        """Have the state taken."""
        ...


class Checkpoints:
    """Takes checkpoints, one at a time. ``restored``: the states that the run begins with."""

    def __init__(self, sink: CheckpointSink | None, restored: Mapping[str, bytes]) -> None:
        self._sink = sink
        self._states: dict[str, bytes] = dict(restored)
        self._lock = anyio.Lock()

    def state_of(self, name: str) -> bytes | None:
        """The actor's state of the last checkpoint."""
        return self._states.get(name)

    async def take(self, label: str, actors: Sequence[Snapshotted]) -> None:
        """Collect every stateful actor's snapshot and write them.

        Raises OSError from the sink, ActorDead or ActorCrashed for an actor that has none to
        give, WiringError without a sink; nothing has changed then.
        """
        if self._sink is None:
            raise WiringError("a checkpoint was asked for, but the supervisor has no sink")
        async with self._lock:
            asked = [(actor.name, actor.request_snapshot()) for actor in actors if actor.stateful]
            states: dict[str, bytes] = {}
            for name, snapshot in asked:
                state = await snapshot.reply.get()
                if state is not None:
                    states[name] = state
            with anyio.CancelScope(shield=True):
                begun = anyio.current_time()
                await self._sink.write(label, states)
                self._states = states
                log.info(
                    "runtime.checkpoint",
                    label=label,
                    actors=sorted(states),
                    bytes=sum(map(len, states.values())),
                    ms=round(1000 * (anyio.current_time() - begun)),
                )
