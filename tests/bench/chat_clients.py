"""What a streamed chat costs: raw aiohttp, httpx, the openai client, and ours, side by side.

    python -m tests.bench.chat_clients [--streams 64,256,1024] [--clients aiohttp,ours]

Every client runs in a process of its own against a server in another, which paces each answer
(``paced_server``). One warm-up round, then ``--rounds`` rounds of ``--streams`` requests at once.

    CPU      of the client's process, per request, in the median round
    wall     median seconds of a request over the ideal
    memory   growth of the client's resident memory in mid-answer, per request in flight

Ratios are to raw aiohttp in the same run: absolute figures are the machine's.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import anyio
import httpx
import msgspec

from actors.llm.endpoints import ResolvedEndpoint
from actors.llm.stream import Complete, StreamReader
from actors.llm.transport import Transport
from tests.bench.paced_server import EVENTS, TICK_S
from tests.llm.support import endpoint, settings

if TYPE_CHECKING:
    import aiohttp

__all__ = ["CLIENTS", "Figures", "main"]

BASELINE = "aiohttp"
INSTALL = "pip install --require-hashes -r requirements/bench.txt"

_BODY = msgspec.json.encode(
    {
        "model": "m",
        "messages": [{"role": "user", "content": "What is in the video? " * 20}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 64,
    }
)
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_PLACES = 40  # of --spread: one each millisecond

Ask = Callable[[], Awaitable[None]]
"""One request, read to its end. Raises if the answer is not whole."""


class Figures(msgspec.Struct, frozen=True):
    """What was measured of one client."""

    client: str
    streams: int
    cpu_ms: float
    wall: float
    kib: float | None


async def _to_the_end(parts: AsyncIterator[bytes]) -> None:
    last = b""
    async for part in parts:
        last = part
    assert last.endswith(b"[DONE]\n\n")


@asynccontextmanager
async def _aiohttp_session() -> AsyncIterator[aiohttp.ClientSession]:
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers=_HEADERS,
    ) as session:
        yield session


@asynccontextmanager
async def _aiohttp(base_url: str) -> AsyncIterator[Ask]:
    """aiohttp as fast as it goes: bytes arrive, nothing is decoded."""

    async def ask() -> None:
        async with session.post(f"{base_url}/chat/completions", data=_BODY) as response:
            await _to_the_end(response.content.iter_any())

    async with _aiohttp_session() as session:
        yield ask


@asynccontextmanager
async def _aiohttp_decoded(base_url: str) -> AsyncIterator[Ask]:
    """aiohttp under our own reader: what another transport would leave to be gained."""

    async def ask() -> None:
        reader = StreamReader()
        async with session.post(f"{base_url}/chat/completions", data=_BODY) as response:
            async for chunk in response.content.iter_any():
                reader.feed(chunk)
        assert isinstance(reader.close(), Complete)

    async with _aiohttp_session() as session:
        yield ask


@asynccontextmanager
async def _httpx(base_url: str, limits: httpx.Limits) -> AsyncIterator[Ask]:
    async def ask() -> None:
        async with client.stream("POST", f"{base_url}/chat/completions", content=_BODY) as response:
            await _to_the_end(response.aiter_bytes())

    async with httpx.AsyncClient(
        headers=_HEADERS, timeout=None, limits=limits, trust_env=False
    ) as client:
        yield ask


def _httpx_default(base_url: str) -> AbstractAsyncContextManager[Ask]:
    """httpx as it comes: 100 connections, 20 of them kept alive."""
    return _httpx(base_url, httpx.Limits(max_connections=100, max_keepalive_connections=20))


def _httpx_unlimited(base_url: str) -> AbstractAsyncContextManager[Ask]:
    """httpx with as many connections as requests."""
    return _httpx(base_url, httpx.Limits(max_connections=None, max_keepalive_connections=None))


@asynccontextmanager
async def _openai(base_url: str) -> AsyncIterator[Ask]:
    """The official client."""
    import openai

    async def ask() -> None:
        events = 0
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "What is in the video? " * 20}],
            stream=True,
            stream_options={"include_usage": True},
            max_tokens=64,
        )
        async for _ in stream:
            events += 1
        assert events == EVENTS + 1, "the usage has an event of its own"

    async with openai.AsyncOpenAI(
        base_url=base_url, api_key="none", max_retries=0, timeout=None
    ) as client:
        yield ask


@asynccontextmanager
async def _ours(base_url: str) -> AsyncIterator[Ask]:
    """One try of the chat client: transport, event decoding, clocks."""
    target = ResolvedEndpoint(
        name="bench", url=f"{base_url}/chat/completions", model="m", roles=("search",)
    )
    transport = Transport(settings(endpoint(base_url), attempt_s=300.0, first_token_s=60.0))

    async def ask() -> None:
        exchange = await transport.exchange(target, _BODY, 300.0)
        assert isinstance(exchange.result, Complete), exchange.result

    try:
        yield ask
    finally:
        await transport.aclose()


class _Client(msgspec.Struct, frozen=True):
    """needs: the package that it is about, where that is none of ours."""

    open: Callable[[str], AbstractAsyncContextManager[Ask]]
    title: str
    needs: str | None = None


CLIENTS = {
    "aiohttp": _Client(_aiohttp, "raw aiohttp", "aiohttp"),
    "aiohttp-decoded": _Client(_aiohttp_decoded, "aiohttp + our event reader", "aiohttp"),
    "httpx": _Client(_httpx_default, "httpx, default limits"),
    "httpx-unlimited": _Client(_httpx_unlimited, "httpx, no limits"),
    "openai": _Client(_openai, "openai client", "openai"),
    "ours": _Client(_ours, "ours (Transport.exchange)"),
}


def _resident_kib() -> float | None:
    """Resident memory of this process; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * 4.0


async def measure(
    name: str, base_url: str, streams: int, rounds: int, tick_s: float = TICK_S
) -> Figures:
    """Measure one client, in this process."""
    ideal_s = EVENTS * tick_s
    seconds: list[float] = []
    resident: list[float] = []
    before = _resident_kib()

    async def timed(ask: Ask) -> None:
        begun = time.monotonic()
        await ask()
        seconds.append(time.monotonic() - begun)

    async def weigh() -> None:
        await anyio.sleep(ideal_s / 2)
        if (now := _resident_kib()) is not None:
            resident.append(now)

    async def one_round(ask: Ask) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(weigh)
            for _ in range(streams):
                tasks.start_soon(timed, ask)

    async with CLIENTS[name].open(base_url) as ask:
        await one_round(ask)
        seconds.clear()
        used = []
        for _ in range(rounds):
            begun = time.process_time()
            await one_round(ask)
            used.append(time.process_time() - begun)
    return Figures(
        client=name,
        streams=streams,
        cpu_ms=median(used) * 1000 / streams,
        wall=median(seconds) / ideal_s,
        kib=(max(resident) - before) / streams if resident and before is not None else None,
    )


def _run(name: str, streams: int, args: argparse.Namespace) -> Figures:
    """Measure one client, in a process of its own, with a server of its own."""
    here = [sys.executable, "-m"]
    with subprocess.Popen(
        [*here, "tests.bench.paced_server", "--places", str(_PLACES if args.spread else 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        command = [*here, "tests.bench.chat_clients", "--child", name, "--port", port]
        command += ["--streams", str(streams), "--rounds", str(args.rounds)]
        if args.uvloop:
            command.append("--uvloop")
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        finally:
            server.stdin.close()
    return msgspec.json.decode(done.stdout, type=Figures)


def _table(figures: list[Figures]) -> list[str]:
    rows = [("client", "streams", "CPU ms/request", "x aiohttp", "wall/ideal", "KiB/call")]
    for found in figures:
        base = [f for f in figures if f.client == BASELINE and f.streams == found.streams]
        rows.append(
            (
                CLIENTS[found.client].title,
                str(found.streams),
                f"{found.cpu_ms:.2f}",
                f"{found.cpu_ms / base[0].cpu_ms:.2f}" if base else "-",
                f"{found.wall:.2f}",
                "-" if found.kib is None else f"{found.kib:.0f}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU, wall time and memory of chat clients")
    parser.add_argument("--streams", default="64,256,1024", help="requests at once")
    parser.add_argument("--clients", default=",".join(CLIENTS), help="of " + ", ".join(CLIENTS))
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds after the warm-up")
    parser.add_argument("--spread", action="store_true", help="streams out of step")
    parser.add_argument("--uvloop", action="store_true", help="run the clients on uvloop")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--port", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the clients that are installed, and print one table."""
    args = _arguments(argv)
    if args.child:
        found = anyio.run(
            measure,
            args.child,
            f"http://127.0.0.1:{args.port}/v1",
            int(args.streams),
            args.rounds,
            backend_options={"use_uvloop": args.uvloop},
        )
        sys.stdout.buffer.write(msgspec.json.encode(found))
        return
    names = []
    for name in args.clients.split(","):
        needs = CLIENTS[name].needs
        if needs is not None and importlib.util.find_spec(needs) is None:
            print(f"{CLIENTS[name].title}: {needs} is not installed; {INSTALL}", file=sys.stderr)
        else:
            names.append(name)
    figures = []
    for streams in map(int, args.streams.split(",")):
        for name in names:
            figures.append(_run(name, streams, args))
            print(*_table(figures[-1:])[1:], file=sys.stderr, flush=True)
    print(f"{EVENTS} events a request, {TICK_S * 1000:.0f} ms apart; ideal {EVENTS * TICK_S:.2f} s")
    print("streams " + ("spread over the tick" if args.spread else "in lockstep"))
    print("\n".join(_table(figures)))


if __name__ == "__main__":
    main()
