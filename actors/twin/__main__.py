"""``python -m actors.twin``: the simulator as a server of its own."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from actors.twin.catalog import LoadError, load_catalog
from actors.twin.server import Knobs, Twin, serve
from actors.twin.shares import Shares
from actors.twin.sockets import base_url_of, bind_loopback
from actors.twin.wire import NOTE

__all__ = ["main", "parse_arguments"]

_DESCRIPTION = f"""\
An OpenAI-compatible chat endpoint on loopback. {NOTE}

It plays the three parties of a training run over a world whose truth is written down:
  twin-agent    looks into a video tree and answers, right as often as the world says
  twin-judge    says why an answer was wrong, and errs at --judge-noise
  twin-editor   edits skills and prompts, ranks, compacts notes and writes momentum, well and
                badly in the given shares; in the share --hostile it attacks the documents
Every reply is a function of --world-seed and the request, and of nothing else."""

_EPILOG = """\
example:
  python -m actors.twin --world seeds/demo/world.json --questions seeds/demo/questions.jsonl \\
      --port 8399
  curl http://127.0.0.1:8399/health

then, in a run's own configuration, instead of `base_url: twin`:
  llm: {endpoints: [{name: sim, base_url: "http://127.0.0.1:8399/v1", model: twin-agent, ...}]}

Requests must have the layouts of this project's prompts; any other gets a 400 that says what
is missing. Ends on SIGINT or SIGTERM, and with --fd also when its standard input is closed."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The command line. Exits with 2 and a sentence on standard error if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m actors.twin",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--world", type=Path, required=True, help="world.json: the planted truth")
    parser.add_argument(
        "--questions", type=Path, required=True, help="questions.jsonl: what can be asked"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one, printed)"
    )
    where.add_argument("--fd", type=int, help="number of an inherited listening socket")
    parser.add_argument("--world-seed", type=int, default=7, help="(default: %(default)s)")
    shares = (
        ("--helpful", 0.45, "share of the editor's proposals that teach a lesson"),
        ("--useless", 0.30, "share that changes nothing"),
        ("--harmful", 0.15, "share that misleads"),
        ("--malformed", 0.10, "share that cannot be read or applied"),
        ("--hostile", 0.0, "share of the editor's replies that are attacks, beside the other four"),
        ("--judge-noise", 0.10, "share of the judge's verdicts that are wrong"),
    )
    for flag, share, what in shares:
        parser.add_argument(flag, type=float, default=share, help=f"{what} (default: %(default)s)")
    parser.add_argument(
        "--chunk-delay-s",
        type=float,
        default=0.0,
        help="seconds between streamed chunks (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    parts = [options.helpful, options.useless, options.harmful, options.malformed]
    if any(not 0 <= share <= 1 for share in [*parts, options.hostile, options.judge_noise]):
        parser.error("shares lie in 0..1")
    if abs(sum(parts) - 1) > 1e-9:
        parser.error(f"helpful + useless + harmful + malformed is {sum(parts):g}, must be 1")
    if options.chunk_delay_s < 0:
        parser.error("--chunk-delay-s is a time")
    return options


def main(argv: Sequence[str]) -> int:
    """Serve until told to stop; the exit status."""
    options = parse_arguments(argv)
    knobs = Knobs(
        world_seed=options.world_seed,
        shares=Shares(options.helpful, options.useless, options.harmful, options.malformed),
        hostile=options.hostile,
        judge_noise=options.judge_noise,
        chunk_delay_s=options.chunk_delay_s,
    )
    try:
        twin = Twin(load_catalog(options.world, options.questions), knobs)
        listener = _listener(options.port, options.fd)
    except (LoadError, OSError) as error:
        sys.stderr.write(f"actors.twin: {error}\n")
        return 1
    if options.fd is None:
        sys.stderr.write(f"{NOTE}\nserving on {base_url_of(listener)}\n")
    # SIGINT is how a terminal ends it: the server has stopped in order by then.
    with listener, contextlib.suppress(KeyboardInterrupt):
        anyio.run(_run, twin, listener, options.fd is not None)
    return 0


def _listener(port: int, fd: int | None) -> socket.socket:
    if fd is not None:
        return socket.socket(fileno=fd)  # finds out by itself that it speaks TCP
    return bind_loopback(port)


async def _run(twin: Twin, listener: socket.socket, orphan_ends: bool) -> None:
    until = anyio.Event()

    async def watch_parent() -> None:
        """The parent holds the other end of standard input; its end, however it came, is ours."""
        fd = sys.stdin.fileno()
        while True:
            await anyio.wait_readable(fd)
            if not os.read(fd, 4096):
                until.set()
                return

    async with anyio.create_task_group() as tasks:
        if orphan_ends:
            tasks.start_soon(watch_parent)
        await serve(twin, listener, until)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
