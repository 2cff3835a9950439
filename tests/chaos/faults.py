"""A whole run against endpoints of which every fifth answer goes wrong, in every known way.

    python -m tests.chaos.faults                        20 % in all, one run
    python -m tests.chaos.faults --share .4 --runs 5    more of it, another seed each time

A proxy on loopback stands between the run and the simulator. What it does to a request follows
from the seed, the request's bytes and how often they have come: a repeated try can succeed, and
the same seed does the same. Beside it one endpoint of every role is at a port where nobody
listens. The run must end as the undisturbed one, with nothing missing, and ``attempts`` must
count the failures as they were made. Prints what was made and what was counted; exit 1 if not.
"""

from __future__ import annotations

import argparse
import hashlib
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx
import msgspec

from actors.config import ROOT
from actors.ledger.reader import open_reader
from protocol.rows import AttemptRow
from tests.chaos.comparing import differing, undisturbed
from tests.chaos.families import FAULTS, HEALTHY, ODDITIES, PROSE, Answer, Fault
from tests.chaos.invariants import broken
from tests.llm.server import Connection, serving
from tests.system.runs import SMALL, command, environment, result_of, settings

__all__ = [
    "CLOCKS",
    "Faulty",
    "against_faults",
    "endpoints",
    "faulty",
    "main",
    "miscounted",
    "simulator",
]

CLOCKS = (
    "llm.attempts=12",
    "llm.first_token_s=1.5",
    "llm.idle_s=0.7",
    "llm.backoff_s=0.01",
    "llm.backoff_cap_s=0.1",
    "llm.retry_share=1",
    "llm.breaker_cooldown_s=0.2",
)
"""So that a fault costs a moment, and twelve in a row do not happen."""

ODD_SHARE = 0.1
"""Of the answers that are whole: served in an unusual way."""

_ROLES = (("agent", "[search, vision]"), ("judge", "[judge]"), ("editor", "[evolve]"))


class Faulty:
    """Where the proxy listens, and what it has done. made: by name; booked: by expected kind.

    garbled: models whose every reply is prose, whole and in order, and nothing that was asked for.
    """

    def __init__(self, base_url: str, share: float, seed: int) -> None:
        self.base_url = base_url
        self.made: Counter[str] = Counter()
        self.booked: Counter[str] = Counter()
        self.garbled: set[str] = set()
        self._share = share
        self._seed = seed
        self._seen: Counter[bytes] = Counter()

    def choose(self, body: bytes) -> Fault:
        """What becomes of this try of this request."""
        if self.garbled and msgspec.json.decode(body)["model"] in self.garbled:
            return PROSE
        digest = hashlib.sha256(body).digest()
        self._seen[digest] += 1
        drawn = hashlib.sha256(f"{self._seed} {self._seen[digest]} {digest.hex()}".encode())
        share, which = (int.from_bytes(drawn.digest()[at : at + 8], "big") / 2**64 for at in (0, 8))
        if share < self._share:
            return FAULTS[int(which * len(FAULTS))]
        if share < self._share + ODD_SHARE * (1 - self._share):
            return ODDITIES[int(which * len(ODDITIES))]
        return HEALTHY

    def note(self, fault: Fault, *, fresh: bool) -> None:
        """Count it. fresh: it is the connection's first request."""
        self.made[fault.name] += 1
        if fault.kind is not None and (fresh or not fault.before_head):
            self.booked[fault.kind] += 1


@asynccontextmanager
async def faulty(target: str, *, share: float, seed: int) -> AsyncIterator[Faulty]:
    """A proxy before the simulator at ``target``. share: of all requests, in [0, 1]."""
    found: list[Faulty] = []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    async with httpx.AsyncClient(trust_env=False, timeout=60.0, limits=limits) as upstream:

        async def handle(connection: Connection) -> None:
            fresh = True
            while (request := await connection.request()) is not None:
                fault = found[0].choose(request[1])
                found[0].note(fault, fresh=fresh)
                fresh = False
                if fault is PROSE:  # the simulator would not know what to make of its answer
                    await fault.play(connection, Answer((), b""))
                else:
                    await fault.play(connection, await _asked(upstream, target, request[1]))

        async with serving(handle) as server:
            found.append(Faulty(server.base_url, share, seed))
            yield found[0]


async def _asked(upstream: httpx.AsyncClient, target: str, body: bytes) -> Answer:
    """The stream as it is, and the whole made of it: the simulator is asked once."""
    reply = await upstream.post(f"{target}/chat/completions", content=body)
    reply.raise_for_status()
    events = tuple(event + b"\n\n" for event in reply.content.split(b"\n\n") if event)
    return Answer(events, _whole_of(events))


def _whole_of(events: Sequence[bytes]) -> bytes:
    """A stream's events as the one object that a server sends which ignores ``stream``."""
    parts = [msgspec.json.decode(event[6:]) for event in events[:-1]]
    choices = [choice for part in parts for choice in part["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    finish = next(c["finish_reason"] for c in choices if c["finish_reason"] is not None)
    usage = next(part["usage"] for part in parts if part.get("usage"))
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return msgspec.json.encode({"choices": [choice], "usage": usage})


@contextmanager
def simulator() -> Iterator[str]:
    """The simulator as a process of its own; yields its base URL."""
    demo = ROOT / "seeds" / "demo"
    where = [f"--world={demo / 'world.json'}", f"--questions={demo / 'questions.jsonl'}"]
    with subprocess.Popen(
        [sys.executable, "-m", "actors.twin", *where],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "serving on" in line)
            yield line.split()[-1]
        finally:
            process.kill()


@contextmanager
def nobody() -> Iterator[str]:
    """A base URL at which connections are refused: the port is ours, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def endpoints(*base_urls: str) -> str:
    """The setting: every role's model at each of the addresses."""
    listed = [
        f"{{name: {name}-{place}, base_url: '{url}', model: twin-{name}, roles: {roles}}}"
        for place, url in enumerate(base_urls)
        for name, roles in _ROLES
    ]
    return f"llm.endpoints=[{', '.join(listed)}]"


async def against_faults(
    workspace: Path, assignments: Sequence[str], *, share: float, seed: int
) -> Faulty:
    """A run through the proxy, to its end. Raises AssertionError unless it ends in order."""
    with simulator() as target, nobody() as closed:
        async with faulty(target, share=share, seed=seed) as proxy:
            given = (*assignments, *CLOCKS, endpoints(proxy.base_url, closed))
            arguments = [*settings(given), "--workspace", str(workspace)]
            # not in a thread: if the proxy breaks, the run must go with it
            done = await anyio.run_process(command(*arguments), env=environment(), check=False)
            assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr.decode()}"
    return proxy


def miscounted(workspace: Path, proxy: Faulty) -> list[str]:
    """Kinds of which ``attempts`` has another number than were made.

    A machine that is too slow for the clocks makes timeouts of its own, in place of anything;
    then only the sum is held against what was made.
    """
    with open_reader(workspace / "run.db") as reader:
        rows = reader.rows(AttemptRow)
    found = Counter(
        row.outcome
        for row in rows
        if row.outcome not in ("ok", "cached") and not row.endpoint.endswith("-1")
    )
    problems = []
    if found["timeout"] > proxy.booked["timeout"]:
        if found.total() < proxy.booked.total():
            problems.append(f"{proxy.booked.total()} made, {found.total()} counted")
    elif found != proxy.booked:
        problems.append(f"made {dict(proxy.booked)}, counted {dict(found)}")
    refused = {row.outcome for row in rows if row.endpoint.endswith("-1")}
    if refused != {"transport"}:
        problems.append(f"the port where nobody listens gave {sorted(refused)}")
    if any(row.outcome == "ok" and row.endpoint.endswith("-1") for row in rows):
        problems.append("an answer from where nobody listens")
    return problems


async def _tried(folder: Path, share: float, seed: int, expected: dict[str, object]) -> list[str]:
    workspace = folder / f"faulty{seed}"
    proxy = await against_faults(workspace, SMALL, share=share, seed=seed)
    sys.stdout.write(f"seed {seed}: {proxy.made.total()} requests\n")
    for name, count in sorted(proxy.made.items()):
        sys.stdout.write(f"  {count:5} {name}\n")
    return [
        *differing(result_of(workspace), expected, other_endpoints=True),
        *broken(workspace),
        *miscounted(workspace, proxy),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run them; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.faults", description=__doc__)
    parser.add_argument("--share", type=float, default=0.2, help="of all requests")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    known = parser.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory() as made:
        expected = undisturbed(Path(made) / "whole", SMALL)
        for seed in range(known.seed, known.seed + known.runs):
            problems = anyio.run(_tried, Path(made), known.share, seed, expected)
            sys.stdout.write(
                "\n".join([f"seed {seed}: {'same' if not problems else 'DIFFERS'}", *problems])
            )
            sys.stdout.write("\n")
            bad += bool(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
