"""A small system in a process of its own, for tests that send it real signals.

``python -m tests.runtime.drill MODE BACKEND``. It says ``ready`` once work is in hand. Exit
codes: 0 the work was done, 3 it was cut short, 4 the system gave up. Modes ``drain``, ``hang``:
see ``Labourer``; ``crash``, ``exit``: see ``Librarian``.
"""

from __future__ import annotations

import sys

import aiosqlite
import anyio
import structlog

from actors.runtime.actor import Actor, Context, handles
from actors.runtime.errors import ActorDead, GaveUp
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from tests.runtime.support import Do, Done, settings


def say(line: str) -> None:
    """Tell the test; flushed, it waits for the line."""
    print(line, flush=True)


class Labourer(Actor):
    """``drain``: done soon after the stop was asked for. ``hang``: never done."""

    async def on_start(self, context: Context) -> None:
        """Nothing to rebuild."""
        self.context = context

    async def on_stop(self) -> None:
        """Show that it runs in every case."""
        say("released")

    @handles(Do)
    async def do(self, request: Do) -> Done:
        """Work."""
        say("ready")
        while not (self.context.draining and request.text == "drain"):  # noqa: ASYNC110  # no event
            await anyio.sleep(0.01)
        await anyio.sleep(0.2)
        return Done(text="done", incarnation=self.context.incarnation)


class Librarian(Actor):
    """Holds a database connection, whose thread would keep the interpreter alive.

    ``exit``: a handler wants to leave the interpreter, past every actor. asyncio only.
    """

    async def on_start(self, context: Context) -> None:
        """Open it."""
        self.connection = await aiosqlite.connect(":memory:")

    async def on_stop(self) -> None:
        """Close it, whatever has happened."""
        await self.connection.close()
        say("released")

    @handles(Do)
    async def do(self, request: Do) -> Done:
        """Show that the connection works."""
        async with self.connection.execute("SELECT 1") as cursor:
            await cursor.fetchone()
        say("ready")
        if request.text == "exit":
            raise SystemExit(5)
        return Done(text="done", incarnation=1)


async def main(mode: str) -> int:
    """Run a system until its work has ended."""
    knobs = settings(max_restarts=1, inject_crash=("a@2", "a@3") if mode == "crash" else ())
    kind = Librarian if mode in ("crash", "exit") else Labourer
    try:
        async with Supervisor(
            [ActorSpec(name="a", factory=lambda peers: kind())], knobs, signals=True
        ) as system:
            done = await system.address("a").ask(Do(text=mode))
            while mode == "crash":
                try:
                    await system.address("a").ask(Do(text=mode))
                except ActorDead:
                    await anyio.sleep_forever()
                except Exception as exc:  # noqa: BLE001  # the crash is what is awaited
                    say(type(exc).__name__)
            say(done.text)
    except ActorDead:
        return 3
    except GaveUp as exc:
        say(f"gave up: {exc}")
        return 4
    return 0


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    sys.exit(anyio.run(main, sys.argv[1], backend=sys.argv[2]))
