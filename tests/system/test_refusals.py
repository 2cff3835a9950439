"""Trainings of which endpoints refuse: the same end beside a healthy one, else one exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from actors.ledger.reader import open_reader
from protocol.rows import AttemptRow
from tests.chaos.comparing import TINY, differing, undisturbed
from tests.chaos.faults import endpoints, faulty, simulator
from tests.llm.server import Connection, serving
from tests.system.runs import command, environment, events, result_of, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180), pytest.mark.anyio]

_KEY = b'{"error": {"message": "Invalid API key", "code": "invalid_api_key"}}'
_BUSY = b'{"error": {"message": "maintenance"}}'


def refusal(status: bytes, body: bytes, *headers: bytes) -> bytes:
    """A response that is no answer."""
    head = b"\r\n".join((b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers))
    return head + b"\r\n\r\n" + body


REFUSED = refusal(b"401 Unauthorized", _KEY)
AWAY = refusal(b"503 Away", _BUSY, b"Retry-After: 999999")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The undisturbed result."""
    return undisturbed(tmp_path_factory.mktemp("whole") / "run", TINY)


class Refusing:
    """A server that gives every request the same reply."""

    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.asked = 0

    async def __call__(self, connection: Connection) -> None:
        while await connection.request() is not None:
            self.asked += 1
            await connection.send(self.reply)


async def trained(workspace: Path, *given: str) -> tuple[int, str]:
    """Exit code and what was said."""
    arguments = [*settings((*TINY, *given)), "--workspace", str(workspace)]
    done = await anyio.run_process(command(*arguments), env=environment(), check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("reply", [REFUSED, AWAY], ids=["key", "retry-after"])
async def test_one_bad_endpoint_of_every_role_changes_nothing(
    tmp_path: Path, expected: dict[str, object], reply: bytes
) -> None:
    """Exit 0, every row and document as undisturbed; it is asked a few times and told once each."""
    workspace, bad = tmp_path / "run", Refusing(reply)
    with simulator() as target:
        async with faulty(target, share=0.0, seed=1) as good, serving(bad) as refusing:
            both = endpoints(refusing.base_url, good.base_url)
            code, said = await trained(workspace, both)
    assert code == 0, said
    assert differing(result_of(workspace), expected, other_endpoints=True) == []
    with open_reader(workspace / "run.db") as reader:
        failed = [row for row in reader.rows(AttemptRow) if row.outcome not in ("ok", "cached")]
    assert len(failed) == bad.asked
    assert {row.endpoint for row in failed} == {"agent-0", "judge-0", "editor-0"}
    out = [event for event in events(workspace) if event["event"] == "llm.endpoint_out"]
    first = [event for event in out if not event["repeated"]]
    assert sorted(str(event["endpoint"]) for event in first) == ["agent-0", "editor-0", "judge-0"]
    assert said.count("llm.endpoint_out: agent-0") == 1
    assert not any(event["event"] == "llm.paused" for event in events(workspace))


def only(role: str, good: str, bad: str) -> str:
    """The setting: one endpoint a role, of which one refuses."""
    parts: Mapping[str, str] = {
        "agent": "[search, vision]",
        "judge": "[judge]",
        "editor": "[evolve]",
    }
    listed = [
        f"{{name: {name}, base_url: '{bad if name == role else good}', "
        f"model: twin-{name}, roles: {roles}}}"
        for name, roles in parts.items()
    ]
    return f"llm.endpoints=[{', '.join(listed)}]"


@pytest.mark.parametrize("role", ["agent", "judge", "editor"])
@pytest.mark.parametrize(
    ("reply", "expect", "why"),
    [
        pytest.param(REFUSED, 1, "auth: HTTP 401: Invalid API key", id="key"),
        pytest.param(AWAY, 75, "HTTP 503: maintenance", id="retry-after"),
    ],
)
async def test_a_role_without_another_endpoint_ends_the_run_alike(
    tmp_path: Path, role: str, reply: bytes, expect: int, why: str
) -> None:
    """Whichever role meets it: the same exit code, and what the server said."""
    bad = Refusing(reply)
    with simulator() as target:
        async with serving(bad) as refusing:
            code, said = await trained(tmp_path / "run", only(role, target, refusing.base_url))
    assert code == expect, said
    assert why in said
    if role != "agent":
        assert f"(endpoint {role})" in said
