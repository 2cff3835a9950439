"""The simulator under supervision: one child per incarnation, its death is ours."""

from __future__ import annotations

import socket
from pathlib import Path

from actors.runtime.actor import Actor, Context, handles
from actors.twin.process import TwinProcess, start_twin
from protocol.settings import TwinSettings
from protocol.twin import TwinHealth, TwinHealthy

__all__ = ["TwinActor"]


class TwinActor(Actor):
    """Keeps the embedded endpoint alive.

    listener: a listening socket that outlives this actor and keeps the address; it is never
    closed here. log_path: what the child prints.
    """

    def __init__(
        self,
        settings: TwinSettings,
        *,
        world: Path,
        questions: Path,
        listener: socket.socket,
        log_path: Path,
    ) -> None:
        self._settings = settings
        # The child works in another folder than we do.
        self._world = world.absolute()
        self._questions = questions.absolute()
        self._listener = listener
        self._log_path = log_path
        self._child: TwinProcess | None = None

    async def on_start(self, context: Context) -> None:
        """Start the child and wait until it answers. Raises TwinDied if it does not live."""
        # Kept before it is healthy, so that on_stop ends it whatever happens next.
        self._child = child = await start_twin(
            self._settings,
            world=self._world,
            questions=self._questions,
            listener=self._listener,
            log_path=self._log_path,
        )
        await child.wait_healthy()
        # Its end, unless on_stop brought it about, raises in our task group: a crash.
        context.tasks.start_soon(child.wait, name="twin child")
        context.log.info("twin.up", base_url=child.base_url, pid=child.pid)

    async def on_stop(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            await child.stop()

    @handles(TwinHealth)
    async def health(self, request: TwinHealth) -> TwinHealthy:
        """Ask the child how it is."""
        if self._child is None:
            raise RuntimeError("asked before on_start or after on_stop")
        found = await self._child.health()
        return TwinHealthy(base_url=self._child.base_url, pid=found.pid, served=found.served)
