"""The parts of the check that need no run: the machine, the models, the words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from actors.commands.check_calls import Embedded, Heard, Models
from actors.commands.check_endpoints import embedding_line, endpoint_lines
from actors.commands.check_line import Line, fail, fine, in_words, shown, stops, warn
from actors.commands.check_place import (
    Machine,
    cache_line,
    clock_line,
    disk_line,
    files_line,
    target_line,
    versions_lines,
)
from actors.commands.check_probes import FORM, Probe, roles_of
from actors.config import load_config
from actors.workspace.lock import WorkspaceLock
from protocol.llm import Attempt, Chat, ChatAnswer, ChatFailed, ChatMessage, FailureKind, Usage
from protocol.settings import Endpoint
from tests.cache.support import redis_url

CONFIG = load_config(None)
ENDPOINT = Endpoint(
    name="e", base_url="http://h:1/v1", model="m", roles=("search", "judge", "evolve")
)
CHAT = Chat(role="search", messages=(ChatMessage(role="user", content="?"),), cache_salt=None)
PROBE = Probe(endpoint=ENDPOINT, role="search", kind="role", chat=CHAT)
SERVED = Models(served={"m": 65536})


def answer(text: str, **changes: object) -> ChatAnswer:
    values: dict[str, object] = {
        "text": text,
        "finish": "stop",
        "usage": Usage(prompt_tokens=20, completion_tokens=21),
        "endpoint": "e",
        "cached": False,
        "seconds": 3.0,
        "attempts": (Attempt(endpoint="e", outcome="ok", seconds=3.0, first_token_s=1.0),),
    }
    return ChatAnswer(**(values | changes))  # type: ignore[arg-type]  # by name


def told(reply: ChatAnswer | ChatFailed, probe: Probe = PROBE) -> list[Line]:
    """The lines about one call; the endpoint's own first line is left out."""
    return endpoint_lines(CONFIG, probe.endpoint, SERVED, [Heard(probe, reply, 3.0)])[1:]


def test_a_line() -> None:
    """On one line, whatever a server said; plain it is ASCII, and no mark stands for another."""
    line = fail("json", "two\nlines", "mend\tit")
    assert shown(line, plain=True).plain == "X  json       two lines  -> mend it"
    assert shown(line, plain=False).plain.startswith("✗ json")
    lines = (fine("n", "f"), warn("n", "f", "r"), line)
    signs = {shown(one, plain=True).plain[:2] for one in lines}
    assert len(signs) == 3
    assert stops([line])
    assert not stops([fine("a", "b"), warn("a", "b", "c")])
    page = "<!DOCTYPE html><html><style>p {}</style><p>Not here</p></html>"
    assert in_words(page) == "Not here"


def test_how_fast_it_is() -> None:
    """First token, tokens a second, finish, tokens; without usage a warning."""
    action = '{"thought": "t", "action": {"tool": "view_node", "args": {"node_id": "L1_000"}}}'
    (line,) = told(answer(action))
    assert line.mark == "ok"
    wanted = "e (m): first token 1.00 s, 10 tokens/s, finish stop, 20 + 21 tokens"
    assert line.found == wanted
    (line,) = told(answer(action, usage=Usage()))
    assert (line.mark, "no usage reported" in line.found) == ("warning", True)


@pytest.mark.parametrize(
    ("reply", "mark", "words"),
    [
        (answer("no idea"), "warning", "not as asked for"),
        (answer("cut", finish="length"), "error", "max_tokens"),
        (answer("<think>well</think> hm"), "warning", "reasoning parser"),
        (answer("  "), "error", "enable_thinking"),
    ],
    ids=["prose", "cut", "thoughts", "empty"],
)
def test_replies_that_a_run_could_not_read(reply: ChatAnswer, mark: str, words: str) -> None:
    """Told beside how fast it was."""
    line = told(reply)[-1]
    assert line.mark == mark
    assert words in f"{line.found} {line.remedy}"


@pytest.mark.parametrize(
    ("kind", "detail", "words"),
    [
        ("auth", "HTTP 401: no", "api_key_env"),
        ("empty", "finish_reason stop without an answer", "enable_thinking: false"),
        ("context", "too long", "agent.max_prompt_tokens"),
        ("bad_request", "UnsupportedProtocol: x", "must be like http://"),
        ("bad_request", "HTTP 404: no route", "no chats at this address"),
        ("quota", "insufficient_quota", "top it up"),
        ("timeout", "first token: nothing within 5 s", "llm.first_token_s"),
    ],
)
def test_every_failure_has_its_remedy(kind: FailureKind, detail: str, words: str) -> None:
    """By kind, and by what the server said."""
    (line,) = told(ChatFailed(kind=kind, fatal=True, detail=detail))
    assert line.mark == "error"
    assert words in line.remedy


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "api_key_env"),
        (402, "top it up"),
        (403, "api_key_env"),
        (404, "there are no chats at this address"),
        (429, "wait"),
        (500, "server's log"),
        (503, "not ready: wait"),
        (302, "sends elsewhere: mend base_url of e"),
        (200, "look at what the server says"),
    ],
)
def test_a_server_that_is_there_need_not_be_started(status: int, words: str) -> None:
    """Without a list of models, and without an answer to any chat: by the status."""
    models = Models(why=f"HTTP {status}", status=status)
    (line,) = endpoint_lines(CONFIG, ENDPOINT, models, [])
    assert line.mark == "error"
    assert words in line.remedy
    assert "start the server" not in line.remedy


def test_a_server_that_is_not_ready_is_waited_for() -> None:
    """Its chats say so too."""
    (line,) = told(ChatFailed(kind="server_error", fatal=False, detail="HTTP 503: loading"))
    assert "not ready: wait" in line.remedy
    (line,) = told(ChatFailed(kind="server_error", fatal=False, detail="HTTP 500: 503 lines"))
    assert line.remedy == "look at the server's log"


@pytest.mark.parametrize("kind", ["form", "image"])
def test_an_address_is_no_form(kind: Literal["form", "image"]) -> None:
    """A 404 is of the address, unless other calls are answered there."""
    lost = ChatFailed(kind="bad_request", fatal=True, detail="HTTP 404: no such route")
    probe = msgspec.structs.replace(PROBE, kind=kind)
    (line,) = told(lost, probe)
    assert line.remedy == "there are no chats at this address: look at base_url and model"
    heard = [Heard(PROBE, answer("{}"), 1.0), Heard(probe, lost, 1.0)]
    line = endpoint_lines(CONFIG, ENDPOINT, SERVED, heard)[-1]
    assert line.remedy.startswith("look at what the server says; it may be this: ")


def test_what_is_asked_for_is_blamed() -> None:
    """A refused form, a refused picture, refused tools: what to set instead."""
    refused = ChatFailed(kind="bad_request", fatal=True, detail="HTTP 400: no")
    form = msgspec.structs.replace(PROBE, kind="form")
    assert "json_output of e to object" in told(refused, form)[0].remedy
    held = msgspec.structs.replace(PROBE, chat=msgspec.structs.replace(CHAT, json_schema=FORM))
    assert "json_output of e to object" in told(refused, held)[0].remedy
    picture = msgspec.structs.replace(PROBE, kind="image")
    assert "agent.vision to none" in told(refused, picture)[0].remedy


@pytest.mark.parametrize(
    ("text", "how", "mark"),
    [
        ('{"colour": "blue", "legs": 8}', "schema", "ok"),
        ('```json\n{"colour": "blue", "legs": 8}\n```', "schema", "warning"),
        ('{"sky": "blue"}', "schema", "warning"),
        ('{"sky": "blue"}', "object", "ok"),
        ("Blue.", "object", "warning"),
    ],
)
def test_the_form(text: str, how: str, mark: str) -> None:
    """Held to it, or not: a fence is no form."""
    endpoint = msgspec.structs.replace(ENDPOINT, json_output=how)
    (line,) = told(answer(text), msgspec.structs.replace(PROBE, endpoint=endpoint, kind="form"))
    assert line.mark == mark


def test_what_it_serves() -> None:
    """Models by name, close ones suggested; a context that is too short for a role."""

    def first(models: Models, reply: ChatAnswer | ChatFailed) -> Line:
        return endpoint_lines(CONFIG, ENDPOINT, models, [Heard(PROBE, reply, 1.0)])[0]

    lost = ChatFailed(kind="bad_request", fatal=True, detail="HTTP 404: no model")
    fair = answer("hm")
    assert "context 65536: enough" in first(SERVED, fair).found
    assert first(Models(served={"m": None}), fair).mark == "ok"
    assert first(Models(served={"Org/M": None}), fair).mark == "warning"
    other = first(Models(served={"Org/M": None}), lost)
    assert (other.mark, other.remedy) == ("error", "set its model; did you mean Org/M?")
    assert "one of x, y" in first(Models(served={"x": None, "y": None}), lost).remedy
    short = first(Models(served={"m": 16000}), fair)
    assert (short.mark, "set agent.max_prompt_tokens to 14000" in short.remedy) == ("error", True)
    roomy = msgspec.structs.replace(ENDPOINT, roles=("judge",))
    line = endpoint_lines(CONFIG, roomy, Models(served={"m": 8000}), [])[0]
    assert (line.mark, "diagnoser.max_trace_chars" in line.remedy) == ("warning", True)
    assert first(Models(why="HTTP 404"), fair).mark == "warning"
    assert first(Models(why="ConnectError"), lost).mark == "error"
    assert first(Models(below_v1=True), lost).remedy.endswith("http://h:1/v1/v1")
    assert roles_of(CONFIG, msgspec.structs.replace(ENDPOINT, roles=("vision",))) == ()


def test_embedding() -> None:
    """Dimensions, or what is wrong."""
    assert "384 dimensions" in embedding_line(CONFIG, Embedded(384, 0.1)).found
    assert embedding_line(CONFIG, Embedded(0, 0.1, "transport: refused")).mark == "error"


# -- the machine ------------------------------------------------------------------------


def test_versions(tmp_path: Path) -> None:
    """Against the lock: what lacks, what differs, what a marker leaves out."""
    lock = tmp_path / "run.txt"
    lock.write_text(
        "a==1.0 \\\n    --hash=sha256:00\nb==2.0 ; python_version < '3' \\\nb==2.1 \\\n"
        "c==3.0 ; sys_platform == 'none' \\\n    # via x\n"
    )

    def installed(**versions: str) -> Callable[[str], str]:
        def version(name: str) -> str:
            try:
                return versions[name]
            except KeyError as error:
                raise metadata.PackageNotFoundError(name) from error

        return version

    whole = Machine(installed=installed(a="1.0", b="2.1"), python=(3, 12), sqlite=(3, 45, 1))
    (line,) = versions_lines(whole, lock)
    assert line.found == "Python 3.12, SQLite 3.45.1, 2 packages as locked"
    lacking = Machine(installed=installed(b="3.0"), python=(3, 10), sqlite=(3, 7, 1))
    lines = versions_lines(lacking, lock)
    assert [line.mark for line in lines] == ["error", "error", "error", "warning"]
    assert "not installed: a" in lines[2].found
    assert "b 3.0 (locked: 2.0 or 2.1)" in lines[3].found
    assert "no lock file" in versions_lines(whole, tmp_path / "none")[0].found


def test_open_files() -> None:
    """As the run itself would see it: the soft limit can be raised, the hard one cannot."""
    assert files_line(CONFIG, lambda: (1024, 4096)).mark == "ok"
    assert "the run raises that" in files_line(CONFIG, lambda: (100, 4096)).found
    assert files_line(CONFIG, lambda: (100, 200)).mark == "error"
    assert files_line(CONFIG, lambda: (-1, -1)).mark == "ok"


def test_the_clock() -> None:
    """Against servers, and against our own files."""
    now = datetime.now(UTC)
    machine = Machine(now=lambda: now)
    assert clock_line(machine, {"e": now + timedelta(seconds=5)}).mark == "ok"
    late = clock_line(machine, {"e": now + timedelta(hours=2)})
    assert (late.mark, "e is +7200 s" in late.found) == ("warning", True)
    assert clock_line(Machine(now=lambda: datetime(1990, 1, 1, tzinfo=UTC)), {}).mark == "warning"


def test_the_disk(tmp_path: Path) -> None:
    """Room for the most outcomes, more where prompts are longer than the demo's."""
    target = tmp_path / "a" / "b"
    assert disk_line(target, 10_000, 2500.0, lambda _: 10**9).mark == "ok"
    assert disk_line(target, 10_000, 25_000.0, lambda _: 7 * 10**8).mark == "error"

    def broken(path: Path) -> int:
        assert path == tmp_path
        raise OSError("not mounted")

    assert disk_line(target, 1.0, 1.0, broken).mark == "error"


def test_the_target(tmp_path: Path) -> None:
    """Nothing is made; one that is held names its holder."""
    assert target_line(tmp_path / "new" / "er", resumed=False).mark == "ok"
    assert target_line(tmp_path, resumed=False).mark == "error"
    (tmp_path / "file").touch()
    assert target_line(tmp_path / "file" / "x", resumed=False).mark == "error"
    assert target_line(tmp_path, resumed=True).mark == "ok"
    with WorkspaceLock(tmp_path):
        held = target_line(tmp_path, resumed=True)
    assert held.mark == "error"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "lock"]


def test_the_cache() -> None:
    """What cannot be read is an error (row P1-1); nobody at home is a warning."""
    assert "30 days" in cache_line(CONFIG, {}).found
    assert cache_line(CONFIG, {"REDIS_CACHE_TTL": "0"}).mark == "error"
    none = msgspec.structs.replace(
        CONFIG, cache=msgspec.structs.replace(CONFIG.cache, backend="none")
    )
    assert cache_line(none, {}).mark == "warning"


@pytest.mark.redis
def test_a_redis_that_answers() -> None:
    """A ping, and nothing more."""
    line = cache_line(CONFIG, {"REDIS_URL": redis_url()})
    assert line.mark == "ok"
    assert "answers" in line.found
