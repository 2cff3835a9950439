"""Numbers for Prometheus: the text format, served on the loopback to whoever asks.

No library: the format is a line per number, and the official client keeps a registry of its own
in global state, which the sums of ``board`` would have to be copied into. Labels are few and
fixed: endpoints, actors, kinds; never a question or a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.monitor.beside import beside
from actors.monitor.board import Board
from actors.runtime.stats import ActorStats
from protocol.llm import EndpointsSeen

__all__ = ["metrics_text", "serve_metrics"]

Sample = tuple[Mapping[str, str], float]
_HEAD_BYTES = 16_384
_PATIENCE_S = 10.0
_BREAKER = {"closed": 0.0, "half_open": 1.0, "open": 2.0, "out": 3.0}

log = structlog.get_logger("metrics")


def metrics_text(
    board: Board, seen: EndpointsSeen | None, actors: Sequence[ActorStats], now: float
) -> str:
    """Everything in the text format 0.0.4. seen: None leaves the endpoints out."""
    families = [*_of_board(board, now), *_of_actors(actors)]
    if seen is not None:
        families += _of_endpoints(seen)
    return "".join(_family(*family) for family in families)


Family = tuple[str, str, str, Iterable[Sample]]


def _of_board(board: Board, now: float) -> list[Family]:
    def counted(event: str, label: str) -> list[Sample]:
        found = [(what, n) for (name, what), n in board.counts.items() if name == event]
        return [({label: what or "none"}, float(n)) for what, n in sorted(found)]

    progress = board.progress(now)
    first = board.first_tokens()
    quantiles = [] if first is None else [({"quantile": "0.5"}, first[0])]
    quantiles += [] if first is None else [({"quantile": "0.95"}, first[1])]
    families: list[Family] = [
        ("trm_chats_total", "counter", "Chats that ended", counted("llm.call", "outcome")),
        (
            "trm_tries_failed_total",
            "counter",
            "Tries at endpoints that failed",
            counted("llm.attempt_failed", "kind"),
        ),
        ("trm_rollouts_total", "counter", "Rollouts", counted("rollout.done", "outcome")),
        ("trm_gate_decisions_total", "counter", "Decisions", counted("gate.decision", "verdict")),
        ("trm_pairs_total", "counter", "Pairs, by state", counted("factorial.pair", "state")),
        ("trm_first_token_seconds", "gauge", "First token of the last 512 calls", quantiles),
        ("trm_rollouts_per_second", "gauge", "Over the last minute", [({}, board.rate(now))]),
        ("trm_epoch", "gauge", "Epoch at work", [({}, float(board.epoch))]),
        ("trm_epochs", "gauge", "Epochs planned", [({}, float(board.epochs))]),
    ]
    if board.finished_at is not None:
        quiet: list[Sample] = [({}, max(0.0, now - board.finished_at))]
        families.append(("trm_quiet_seconds", "gauge", "Since anything finished", quiet))
    if progress is not None:
        families += [
            ("trm_phase_done", "gauge", "Done of the phase", [({}, float(progress.done))]),
            ("trm_phase_planned", "gauge", "Planned, 0: unknown", [({}, float(progress.planned))]),
        ]
        if progress.accuracy is not None:
            accuracy: list[Sample] = [({}, progress.accuracy)]
            families.append(("trm_phase_accuracy", "gauge", "Right of the answered", accuracy))
    return families


def _of_endpoints(seen: EndpointsSeen) -> list[Family]:
    def each(value: Callable[[int], float]) -> list[Sample]:
        return [({"endpoint": one.name}, value(i)) for i, one in enumerate(seen.endpoints)]

    ends = seen.endpoints
    families: list[Family] = [
        ("trm_llm_inflight", "gauge", "Requests", each(lambda i: ends[i].in_flight)),
        ("trm_llm_limit", "gauge", "Adaptive limit", each(lambda i: ends[i].limit)),
        (
            "trm_breaker_state",
            "gauge",
            "0 closed, 1 half open, 2 open, 3 out",
            each(lambda i: _BREAKER[ends[i].breaker]),
        ),
        ("trm_llm_waiting", "gauge", "Calls that wait for leave", [({}, float(seen.waiting))]),
        ("trm_llm_oldest_seconds", "gauge", "Age of the oldest call", [({}, seen.oldest_s)]),
        ("trm_paused", "gauge", "1: by an operator", [({}, float(bool(seen.paused_by)))]),
    ]
    if seen.usd is not None:
        families.append(("trm_cost_usd_total", "counter", "Of the workspace", [({}, seen.usd)]))
    return families


def _of_actors(actors: Sequence[ActorStats]) -> list[Family]:
    def each(value: Callable[[ActorStats], float]) -> list[Sample]:
        return [({"actor": one.actor}, value(one)) for one in actors]

    return [
        ("trm_mailbox_depth", "gauge", "Messages that wait", each(lambda a: a.depth)),
        ("trm_mailbox_oldest_seconds", "gauge", "Oldest of them", each(lambda a: a.oldest_s)),
        ("trm_handlers_running", "gauge", "Messages in hand", each(lambda a: a.in_flight)),
        ("trm_handled_total", "counter", "Messages handled", each(lambda a: a.handled)),
        ("trm_restarts_total", "counter", "Restarts after a crash", each(lambda a: a.restarts)),
    ]


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}\n", f"# TYPE {name} {kind}\n"]
    for labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{shown}}} {value:g}\n" if shown else f"{name} {value:g}\n")
    return "".join(lines) if len(lines) > 2 else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@asynccontextmanager
async def serve_metrics(port: int, text: Callable[[], Awaitable[str]]) -> AsyncIterator[int | None]:
    """Answer ``GET /metrics`` on 127.0.0.1 while the block runs; port 0: any free one.

    Yields the port; None, with a line in the log, if it is taken: a run does not end for that.
    """
    try:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    except OSError as error:
        log.warning(
            "metrics.unavailable", port=port, why=str(error), effect="the run goes on without them"
        )
        yield None
        return
    bound: int = listener.extra(SocketAttribute.local_port)
    log.info("metrics.open", url=f"http://127.0.0.1:{bound}/metrics")

    async def serve(stream: SocketStream) -> None:
        await _answer(stream, text)

    async def accept() -> None:
        await listener.serve(serve)

    async with listener, beside(accept):
        yield bound


async def _answer(stream: SocketStream, text: Callable[[], Awaitable[str]]) -> None:
    gone = (
        anyio.BrokenResourceError,
        anyio.ClosedResourceError,
        anyio.DelimiterNotFound,
        anyio.EndOfStream,
        anyio.IncompleteRead,
    )
    with anyio.move_on_after(_PATIENCE_S), suppress(*gone):
        async with stream:
            buffered = BufferedByteReceiveStream(stream)
            head = await buffered.receive_until(b"\r\n\r\n", _HEAD_BYTES)
            ok = head.startswith((b"GET /metrics ", b"GET /metrics?"))
            body = (await text() if ok else "see /metrics\n").encode()
            status = "200 OK" if ok else "404 Not Found"
            await stream.send(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
