"""The simulator over HTTP: routes, streams, errors. It is NOT a language model and says so.

    POST /v1/chat/completions   SSE or one JSON object
    GET  /v1/models             twin-agent, twin-judge, twin-editor
    GET  /health                what this is, its process and how much it has served

Decides nothing: replies come from ``agent``, ``judge`` and ``editor``. The one thing that
changes while it runs is the counter in ``/health``; no reply depends on it.
"""

from __future__ import annotations

import os
import socket

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from actors.twin.agent import agent_reply
from actors.twin.catalog import Catalog, NotPlanted
from actors.twin.editor import editor_reply
from actors.twin.judge import judge_reply
from actors.twin.layout import LayoutError
from actors.twin.shares import Shares
from actors.twin.wire import (
    FINGERPRINT,
    MODELS,
    NOTE,
    BadRequest,
    Completion,
    Incoming,
    Reply,
    completion_of,
    parse_request,
)
from actors.twin.written import Health, error_json, events, models_json, whole_json

__all__ = ["Knobs", "Twin", "build_app", "serve"]

_SERVER = "video-tree-trm-twin (simulator; not a language model)"
_DRAIN_S = 1
# Longer than any pause of a run: a client must not meet a connection that is just closing.
_KEEP_ALIVE_S = 3600
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
]


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """How the simulator behaves. hostile, judge_noise: shares. chunk_delay_s: seconds."""

    world_seed: int
    shares: Shares
    hostile: float
    judge_noise: float
    chunk_delay_s: float


class Twin:
    """The three simulated models over one catalog."""

    def __init__(self, catalog: Catalog, knobs: Knobs) -> None:
        self.catalog = catalog
        self.knobs = knobs
        self.served = 0

    def reply(self, request: Incoming) -> Reply:
        """What the asked model says. Raises LayoutError or NotPlanted."""
        knobs, turns, seed = self.knobs, request.turns, request.seed
        if request.model == "twin-agent":
            return Reply(agent_reply(self.catalog, knobs.world_seed, turns, seed))
        if request.model == "twin-judge":
            said = judge_reply(self.catalog, knobs.world_seed, knobs.judge_noise, turns, seed)
            return Reply(said)
        return editor_reply(
            self.catalog, knobs.world_seed, knobs.shares, turns, seed, hostile=knobs.hostile
        )

    def health(self) -> Health:
        """The state that ``/health`` tells."""
        return Health(
            status="ok",
            simulator=True,
            note=NOTE,
            world=self.catalog.world.name,
            world_seed=self.knobs.world_seed,
            models=MODELS,
            pid=os.getpid(),
            served=self.served,
        )


class EventStream:
    """A completion as server-sent events: an ASGI reply.

    With a delay every event is a write of its own, as from a model that is thinking. Without
    one, the first content goes out ahead and the rest, which is known by then, in one more.
    """

    def __init__(self, completion: Completion, *, include_usage: bool, delay_s: float) -> None:
        self._completion = completion
        self._include_usage = include_usage
        self._delay_s = delay_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        parts = list(events(self._completion, self._include_usage))
        if self._delay_s <= 0:
            parts = [b"".join(parts[:2]), b"".join(parts[2:])]
        for at, part in enumerate(parts):
            if at and self._delay_s > 0:
                await anyio.sleep(self._delay_s)
            more = at + 1 < len(parts)
            await send({"type": "http.response.body", "body": part, "more_body": more})


def build_app(twin: Twin) -> Starlette:
    """The routes over a simulator."""

    async def chat(request: Request) -> Response | EventStream:
        try:
            incoming = parse_request(await request.body())
            reply = twin.reply(incoming)
        except BadRequest as error:
            return _refusal(400, str(error), error.code)
        except (LayoutError, NotPlanted) as error:
            code = "missing_block" if isinstance(error, LayoutError) else "not_in_world"
            return _refusal(400, f"{error} ({NOTE})", code)
        twin.served += 1
        completion = completion_of(incoming, reply)
        if not incoming.stream:
            return _json(200, whole_json(completion))
        return EventStream(
            completion,
            include_usage=incoming.include_usage,
            delay_s=twin.knobs.chunk_delay_s,
        )

    async def models(_: Request) -> Response:
        return _json(200, models_json())

    async def health(_: Request) -> Response:
        return _json(200, msgspec.json.encode(twin.health()))

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # the only kind it is registered for
        return _refusal(error.status_code, f"{error.detail} ({NOTE})", "no_such_route")

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
        ],
        exception_handlers={HTTPException: refused},
    )


async def serve(twin: Twin, listener: socket.socket, until: anyio.Event) -> None:
    """Answer on a listening socket until the event is set, or a signal asks to stop.

    A socket object and not its number: from a number uvicorn makes a Unix socket, and then
    TCP_NODELAY stays off.
    """
    config = uvicorn.Config(
        build_app(twin),
        access_log=False,
        log_level="warning",
        lifespan="off",
        loop="none",  # the caller's loop
        server_header=False,
        date_header=False,
        headers=[("server", _SERVER), ("x-simulator", FINGERPRINT)],
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    server = uvicorn.Server(config)

    async def end() -> None:
        await until.wait()
        server.should_exit = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


def _json(status: int, body: bytes) -> Response:
    return Response(body, status_code=status, media_type="application/json")


def _refusal(status: int, message: str, code: str) -> Response:
    return _json(status, error_json(message, code))
