"""Makes the calls of the check, through the client of a run; decides nothing about them.

The actors are those of a run, only fewer, and an llm actor per endpoint, so that an endpoint that
is down hides behind no other. Endpoints are asked side by side, the calls of one one after the
other: what is measured is a call alone. All files lie in the folder that is given.
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import anyio
import httpx
import msgspec

from actors.cache.actor import CacheActor
from actors.commands.check_data import Material
from actors.commands.check_probes import Probe
from actors.embedder.client import EmbeddingClient, Try, resolve_key
from actors.embedder.local import LocalModel
from actors.ledger.actor import LedgerActor
from actors.llm.actor import LlmActor
from actors.llm.endpoints import resolve_endpoints
from actors.runtime.errors import AskFailed, SystemFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.system import TWIN, local_model, uses_twin
from actors.twin.actor import TwinActor
from actors.twin.process import base_url_of, bind_loopback
from protocol.embedder import EmbedFailed
from protocol.llm import Attempt, ChatAnswer, ChatFailed
from protocol.settings import Config, Endpoint, LimitSettings, LlmSettings

__all__ = ["Embedded", "Heard", "Models", "ask_all", "embed_once", "list_models", "silence_s"]

_NO_LIMITS = LimitSettings(max_calls=None, max_tokens=None, max_usd=None)
_TRIES = 2
_GRACE_S = 1.0
_FIRST_TOKEN_S = 60.0
"""The longest that a check waits for the first token; ``llm.idle_s`` holds for those after it."""
_OF_ALL = ("transport", "auth", "breaker_open", "timeout", "rate_limit")
"""Failures that the endpoint's other calls would meet too, each after its own clocks."""
_OF_A_MOMENT = ("transport", "truncated", "empty", "server_error", "aborted")
"""Failures that a second try may mend, and that come quickly."""
_HANDLERS = 8
_LIST_S = 10.0
_TEXTS = ("a red boat in the harbour", "what is on the table?")
_LENGTHS = ("max_model_len", "context_length", "max_context_length", "context_window")


class Heard(msgspec.Struct, frozen=True):
    """What came of a probe. seconds: with waits and second tries."""

    probe: Probe
    reply: ChatAnswer | ChatFailed
    seconds: float


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """What ``/models`` says. served: context length by name, None: not told; None: no list.

    below_v1: there is none here, but there is one below ``/v1``. date: the server's clock.
    why: there is no list. status: of HTTP. unreached: no answer of any kind came; silent: though
    somebody took the connection.
    """

    served: Mapping[str, int | None] | None = None
    below_v1: bool = False
    why: str = ""
    status: int | None = None
    unreached: bool = False
    silent: bool = False
    date: datetime | None = None


class Embedded(msgspec.Struct, frozen=True):
    """failed: why there are no vectors; empty: there are."""

    dimensions: int
    seconds: float
    failed: str = ""


# -- chats ------------------------------------------------------------------------------


async def ask_all(
    config: Config, probes: Mapping[str, Sequence[Probe]], material: Material, folder: Path
) -> list[Heard]:
    """Every probe's reply, by endpoint in the order given. folder: for temporary files."""
    heard: dict[str, list[Heard]] = {name: [] for name in probes}
    try:
        async with (
            _started(config, probes, material, folder) as system,
            anyio.create_task_group() as tasks,
        ):
            for name, wanted in probes.items():
                tasks.start_soon(_ask_one, system, config, name, wanted, heard[name])
    except SystemFailed as failure:
        lost = ChatFailed(kind="crash", fatal=False, detail=str(failure))
        for name, wanted in probes.items():
            heard[name] += [Heard(probe, lost, 0.0) for probe in wanted[len(heard[name]) :]]
    return [one for some in heard.values() for one in some]


async def _ask_one(
    system: Supervisor, config: Config, name: str, probes: Sequence[Probe], heard: list[Heard]
) -> None:
    for probe in probes:
        if probe.kind == "pace" and isinstance(heard[-1].reply, ChatFailed):
            heard.append(Heard(probe, heard[-1].reply, 0.0))  # the call before it was the same
            continue
        begun = anyio.current_time()
        reply = await _asked(system, config, name, probe)
        heard.append(Heard(probe, reply, anyio.current_time() - begun))
        if isinstance(reply, ChatFailed) and reply.kind in _OF_ALL:
            heard += [Heard(rest, reply, 0.0) for rest in probes[len(heard) :]]
            return


async def _asked(
    system: Supervisor, config: Config, name: str, probe: Probe
) -> ChatAnswer | ChatFailed:
    """The reply, of a second try where a moment may mend it; never of one after silence."""
    longest_s = _clocks(config).attempt_s * _TRIES + _GRACE_S
    before: tuple[Attempt, ...] = ()
    reply: ChatAnswer | ChatFailed = _silent(longest_s)
    with anyio.move_on_after(longest_s):
        for left in reversed(range(min(_TRIES, config.llm.attempts))):
            try:
                reply = await system.address(f"llm-{name}").ask(probe.chat, timeout_s=math.inf)
            except AskFailed as failure:
                reply = probe.chat.crashed(str(failure))
            reply = msgspec.structs.replace(reply, attempts=(*before, *reply.attempts))
            if isinstance(reply, ChatAnswer) or reply.kind not in _OF_A_MOMENT or not left:
                return reply
            before = reply.attempts
            await anyio.sleep(config.llm.backoff_s)
    return reply


def silence_s(config: Config) -> float:
    """How long a check takes with an endpoint that takes every request and says nothing."""
    return _LIST_S + _clocks(config).first_token_s


def _silent(seconds: float) -> ChatFailed:
    return ChatFailed(kind="timeout", fatal=False, detail=f"no answer within {seconds:g} s")


def _clocks(config: Config) -> LlmSettings:
    """The client's settings: one try, no waiting for the end of an outage, and little patience.

    Somebody sits and waits: an endpoint that takes a call and says nothing is told of after a
    minute, where a run would be patient.
    """
    return msgspec.structs.replace(
        config.llm,
        attempts=1,
        outage_s=config.llm.connect_s,
        first_token_s=min(config.llm.first_token_s, _FIRST_TOKEN_S),
    )


@asynccontextmanager
async def _started(
    config: Config, probes: Mapping[str, Sequence[Probe]], material: Material, folder: Path
) -> AsyncIterator[Supervisor]:
    """The actors, running. Raises SystemFailed."""
    wired: list[ActorSpec] = []
    address = ""
    with ExitStack() as stack:
        asked = {name: wanted[0].endpoint for name, wanted in probes.items() if wanted}
        if uses_twin(config) and any(e.base_url == TWIN for e in asked.values()):
            listener = stack.enter_context(bind_loopback())
            address = base_url_of(listener)
            world, questions = material.world, material.questions
            assert world is not None, "without a world the simulator gets no probe"
            assert questions is not None, "without questions the simulator gets no probe"
            wired.append(
                ActorSpec(
                    name=TWIN,
                    factory=lambda _: TwinActor(
                        config.twin,
                        world=world,
                        questions=questions,
                        listener=listener,
                        log_path=folder / "twin.log",
                    ),
                )
            )
        wired += [
            ActorSpec(
                name="ledger",
                factory=lambda _: LedgerActor(folder / "run.db", _HANDLERS),
                concurrency=_HANDLERS,
            ),
            ActorSpec(
                name="cache",
                # nothing may be answered from what is known, so that all is really asked
                factory=lambda _: CacheActor(
                    msgspec.structs.replace(config.cache, backend="none"), folder, environ={}
                ),
            ),
            *(_client(config, name, endpoint, address) for name, endpoint in asked.items()),
        ]
        settings = msgspec.structs.replace(config.runtime, inject_crash=())
        async with Supervisor(wired, settings) as system:
            yield system


def _client(config: Config, name: str, endpoint: Endpoint, address: str) -> ActorSpec:
    """The client of one endpoint."""
    if endpoint.base_url == TWIN:
        endpoint = msgspec.structs.replace(endpoint, base_url=address)
    llm = msgspec.structs.replace(_clocks(config), endpoints=(endpoint,))
    return ActorSpec(
        name=f"llm-{name}",
        factory=lambda peers: LlmActor(llm, _NO_LIMITS, peers("cache"), peers("ledger")),
        asks=("cache", "ledger"),
    )


# -- models -----------------------------------------------------------------------------


async def list_models(
    endpoints: Sequence[Endpoint], environ: Mapping[str, str]
) -> dict[str, Models]:
    """What each endpoint serves, by its name. Their keys were resolved before."""
    found: dict[str, Models] = {}

    async def one(endpoint: Endpoint, client: httpx.AsyncClient) -> None:
        found[endpoint.name] = await _models(endpoint, client, environ)

    async with (
        # a proxy of the environment is no part of the configuration
        httpx.AsyncClient(timeout=_LIST_S, trust_env=False) as client,
        anyio.create_task_group() as tasks,
    ):
        for endpoint in endpoints:
            tasks.start_soon(one, endpoint, client)
    return {endpoint.name: found[endpoint.name] for endpoint in endpoints}


async def _models(
    endpoint: Endpoint, client: httpx.AsyncClient, environ: Mapping[str, str]
) -> Models:
    (resolved,) = resolve_endpoints([endpoint], environ, 1)
    headers = {"Authorization": f"Bearer {resolved.api_key}"} if resolved.api_key else {}
    base = endpoint.base_url.rstrip("/")
    try:
        response = await client.get(f"{base}/models", headers=headers)
        if response.status_code == 404 and not base.endswith("/v1"):
            below = await client.get(f"{base}/v1/models", headers=headers)
            if below.status_code == 200:
                return Models(below_v1=True, why="HTTP 404")
    except httpx.ReadTimeout:
        return Models(why=f"nothing came within {_LIST_S:g} s", unreached=True, silent=True)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Models(why=_cause(error), unreached=isinstance(error, httpx.TransportError))
    date, status = _date(response.headers.get("date")), response.status_code
    if status != 200:
        return Models(why=f"HTTP {status}", status=status, date=date)
    served = _served(response.content)
    return Models(served=served, why="" if served is not None else "no list of models", date=date)


def _cause(error: BaseException) -> str:
    """What lies below the client's own words: the operating system's, where it spoke."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.errno is not None:
            # of a name that is not known the number is negative, and not the system's
            return os.strerror(below.errno) if below.errno > 0 else str(below.strerror)
        below = below.__cause__ or below.__context__
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _served(content: bytes) -> dict[str, int | None] | None:
    try:
        told = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    rows = told.get("data") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        return None
    served: dict[str, int | None] = {}
    for row in rows:
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            lengths = [row[key] for key in _LENGTHS if isinstance(row.get(key), int)]
            served[row["id"]] = lengths[0] if lengths else None
    return served


# -- vectors ----------------------------------------------------------------------------


async def embed_once(config: Config, environ: Mapping[str, str]) -> Embedded:
    """Two short texts as vectors. Raises ValueError if a key or a model's folder lacks."""
    folder = local_model(config)
    begun = anyio.current_time()
    if folder is not None:
        model = await anyio.to_thread.run_sync(LocalModel, folder)
        vectors = await anyio.to_thread.run_sync(model.embed, _TEXTS)
    else:
        settings = msgspec.structs.replace(config.embedding, attempts=1)
        client = EmbeddingClient(settings, resolve_key(settings, environ), _unnoted)
        try:
            vectors = await client.embed(_TEXTS)
        finally:
            await client.aclose()
    seconds = anyio.current_time() - begun
    if isinstance(vectors, EmbedFailed):
        return Embedded(0, seconds, f"{vectors.kind}: {vectors.detail}")
    return Embedded(len(vectors[0]) // 4, seconds)


async def _unnoted(tried: Try) -> None:
    """The check keeps no accounts."""
