"""``bin/trm ask``: one call, told whole; over real sockets, a few times as a process of its own."""

from __future__ import annotations

import base64
import io
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from actors.config import ROOT
from tests.llm.server import SSE_HEAD, answer, chunked, sse
from tests.system.asking import (
    Asker,
    attempts,
    ended,
    endpoint,
    nobody,
    started,
    status,
    written,
)

CUT = SSE_HEAD + chunked(sse("Hel"), last=False)
"""A stream that ends, as often as not, in the middle."""

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """The command sets logging up for its process: leave it as it was."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Asker:
    """The command."""
    return Asker(capsys)


# -- answers ----------------------------------------------------------------------------


def test_the_text_goes_to_stdout_and_the_rest_to_stderr(ask: Asker) -> None:
    """Stdout can be piped; one line per try and one at the end say how it went."""
    with endpoint(answer("Bonjour, café")) as server:
        ask("--base-url", server.base_url, "--model", "m", "hi")
    assert ask.out == "Bonjour, café\n"
    tried, last = ask.err.splitlines()
    assert tried.startswith("try 1 at 127.0.0.1:")
    assert ": ok, " in tried
    assert last.startswith("finish stop, 3 prompt tokens, 2 completion tokens, ")


def test_one_object_tells_all(ask: Asker) -> None:
    """--json: the answer, what it cost, and every try."""
    with endpoint(answer("Hello")) as server:
        told = ask.json(server.base_url, "hi")
    assert list(told) == [
        "outcome", "kind", "detail", "text", "reasoning", "tool_calls", "finish", "usage",
        "cached", "seconds", "attempts",
    ]  # fmt: skip
    assert (told["outcome"], told["kind"], told["text"]) == ("ok", None, "Hello")
    assert (told["finish"], told["cached"], told["tool_calls"]) == ("stop", False, [])
    assert told["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
    }
    tries = told["attempts"]
    assert isinstance(tries, list)
    (tried,) = tries
    assert tried["endpoint"] == server.base_url.removeprefix("http://").removesuffix("/v1")
    assert (tried["outcome"], tried["kind"], tried["detail"]) == ("ok", None, "")
    assert 0 <= tried["first_token_s"] <= tried["seconds"]


def test_what_is_sent_is_what_the_options_say(
    ask: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """System, sampling, schema and further fields are in the body; the key is in the head."""
    schema = tmp_path / "reply.json"
    schema.write_text('{"type": "object", "properties": {"z": {}, "a": {}}}')
    monkeypatch.setenv("SOME_KEY", "sk-123")
    with endpoint(answer("Hello")) as server:
        ask.json(
            server.base_url, "--system", "Be brief.", "--max-tokens", "7", "--temperature", "0.25",
            "--schema", str(schema), "--extra-body", '{"min_p": 1e-05, "stop": ["no"]}',
            "--api-key-env", "SOME_KEY", "hi",
        )  # fmt: skip
    (body,) = server.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 7, 0.25)
    assert (body["min_p"], body["stop"]) == (1e-05, ["no"])
    assert "properties" in json.dumps(body["response_format"])
    assert b"authorization: bearer sk-123" in server.heads[0].lower()
    assert server.heads[0].startswith(b"POST /v1/chat/completions ")


def test_a_role_brings_its_sampling(ask: Asker) -> None:
    """The judge is asked as the judge is asked in a run."""
    with endpoint(answer("Hello")) as server:
        ask.json(server.base_url, "--role", "judge", "hi")
    assert server.bodies[0]["temperature"] == 0.0


def test_images_go_as_data_urls(ask: Asker, tmp_path: Path) -> None:
    """The type is that of the content, whatever the file is called."""
    first, second = tmp_path / "frame.jpg", tmp_path / "other.gif"
    first.write_bytes(PNG)
    second.write_bytes(b"GIF89a....")
    with endpoint(answer("A cat")) as server:
        ask.json(server.base_url, "--image", str(first), "--image", str(second), "Who?")
    encoded = base64.b64encode(PNG).decode()
    messages = server.bodies[0]["messages"]
    assert isinstance(messages, list)
    content = messages[0]["content"]
    assert content[:2] == [
        {"type": "text", "text": "Who?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}},
    ]
    assert content[2]["image_url"]["url"].startswith("data:image/gif;base64,")


def test_tool_calls_are_shown(ask: Asker) -> None:
    """In the object, and as lines beside an answer without text."""
    called = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at": 3}'}}
    choice = {"index": 0, "delta": {"tool_calls": [called]}, "finish_reason": "tool_calls"}
    event = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    with endpoint(SSE_HEAD + chunked(event, b"data: [DONE]\n\n")) as server:
        told = ask.json(server.base_url, "hi")
        assert told["tool_calls"] == [{"id": "c1", "name": "look", "arguments": '{"at": 3}'}]
        assert told["finish"] == "tool_calls"
        ask("--base-url", server.base_url, "--model", "m", "hi")
    assert ask.out == ""
    assert 'tool call look {"at": 3}' in ask.err.splitlines()


def test_text_from_stdin(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """TEXT - is what stdin holds, as it is; what is not UTF-8 is refused."""
    with endpoint(answer("Hello")) as server:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("été\n".encode())))
        ask.json(server.base_url, "-")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
        assert "UTF-8" in ask.refused("--base-url", server.base_url, "--model", "m", "-")
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "été\n"}]


def test_a_line_is_a_line_for_every_reader(ask: Asker) -> None:
    """Separators that some readers split lines at, and half a character, come as escapes."""
    text = "a\u2028b\x85c\ud800d"
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    event = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    with endpoint(SSE_HEAD + chunked(event, b"data: [DONE]\n\n")) as server:
        told = ask.json(server.base_url, "hi")
        ask("--base-url", server.base_url, "--model", "m", "hi")
    assert str(told["text"]).startswith("a\u2028b\x85c")
    assert ask.out.startswith("a\u2028b\x85c")


# -- the cache --------------------------------------------------------------------------


def test_a_cache_answers_the_second_time(ask: Asker, tmp_path: Path) -> None:
    """Nothing is sent again for the same question; without --cache it is."""
    cache = str(tmp_path / "cache.db")
    with endpoint(answer("Hello")) as server:
        ask.json(server.base_url, "hi")
        first = ask.json(server.base_url, "--cache", cache, "hi")
        second = ask.json(server.base_url, "--cache", cache, "hi")
        other = ask.json(server.base_url, "--cache", cache, "hello")
        assert len(server.bodies) == 3
        ask("--base-url", server.base_url, "--model", "m", "--cache", cache, "hi")
    assert [told["cached"] for told in (first, second, other)] == [False, True, False]
    assert (second["text"], second["attempts"]) == ("Hello", [])
    assert "from the cache" in ask.err


def test_the_environment_says_nothing_about_the_cache(
    ask: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REDIS_CACHE_TTL is for the shared cache of a run."""
    monkeypatch.setenv("REDIS_CACHE_TTL", "0")
    with endpoint(answer("Hello")) as server:
        ask.json(server.base_url, "--cache", str(tmp_path / "cache.db"), "hi")


def test_no_other_file_is_taken_for_a_cache(ask: Asker, tmp_path: Path) -> None:
    """A cache sets aside what it cannot read: a file given by mistake must survive."""
    notes = tmp_path / "notes.txt"
    notes.write_text("precious")
    with nobody() as url:
        for wrong in (notes, tmp_path, tmp_path / "none" / "cache.db"):
            assert f"--cache {wrong}" in ask.refused(
                "--base-url", url, "--model", "m", "--cache", str(wrong), "hi"
            )
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert notes.read_text() == "precious"


# -- failures ---------------------------------------------------------------------------


def test_a_refused_key_is_fatal(ask: Asker) -> None:
    """401: not tried again, exit 1."""
    refusal = status("401 Unauthorized", '{"error": {"message": "wrong key"}}')
    with endpoint(refusal) as server:
        told = ask.json(server.base_url, "hi", expect=1)
        assert (told["outcome"], told["kind"], told["text"]) == ("fatal", "auth", "")
        assert told["detail"] == "HTTP 401: wrong key"
        assert (told["finish"], told["usage"]) == (None, dict.fromkeys(
            ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"), 0
        ))  # fmt: skip
        assert attempts(told) == [("failed", "auth")]
        ask("--base-url", server.base_url, "--model", "m", "hi", expect=1)
    assert ask.out == ""
    assert ask.err.splitlines()[-1].startswith("auth, would fail again: HTTP 401: wrong key")


def test_a_cut_stream_is_tried_again(ask: Asker) -> None:
    """Both tries are told, and nothing of the half answer is."""
    with endpoint(CUT) as server:
        told = ask.json(server.base_url, "--attempts", "2", "hi", expect=75)
    assert (told["outcome"], told["kind"], told["text"]) == ("retry_exhausted", "truncated", "")
    assert attempts(told) == [("failed", "truncated")] * 2


def test_the_second_try_may_answer(ask: Asker) -> None:
    """The answer is whole, and the failed try is told beside it."""
    with endpoint(CUT, answer("Hello")) as server:
        told = ask.json(server.base_url, "hi")
    assert told["text"] == "Hello"
    assert attempts(told) == [("failed", "truncated"), ("ok", None)]


def test_one_attempt_turns_the_ladder_off(ask: Asker) -> None:
    """What the endpoint did once is all there is."""
    with endpoint(CUT, answer("Hello")) as server:
        told = ask.json(server.base_url, "--attempts", "1", "hi", expect=75)
    assert attempts(told) == [("failed", "truncated")]


def test_a_refused_connection_ends_within_the_timeout(ask: Asker) -> None:
    """However many tries are allowed: time is up first, and no breaker holds the call."""
    with nobody() as url:
        told = ask.json(url, "--timeout", "0.2", "--attempts", "1000", "hi", expect=75)
    assert (told["outcome"], told["kind"]) == ("retry_exhausted", "transport")
    assert len(attempts(told)) < 1000


def test_a_silent_endpoint_ends_with_the_timeout(ask: Asker) -> None:
    """--timeout is every clock's upper bound."""
    with endpoint(b"") as server:
        told = ask.json(server.base_url, "--timeout", "0.2", "hi", expect=75)
    assert (told["kind"], attempts(told)) == ("timeout", [("failed", "timeout")])


def test_waiting_for_a_turn_ends_too(ask: Asker) -> None:
    """The endpoint asks for patience beyond --timeout: what was tried is told all the same."""
    busy = status("429 Too Many Requests", "", "Retry-After: 60")
    with endpoint(busy) as server:
        told = ask.json(server.base_url, "--timeout", "0.5", "hi", expect=75)
    assert (told["outcome"], told["kind"]) == ("retry_exhausted", "rate_limit")
    assert str(told["detail"]).startswith("no answer within 0.5 s; the last try: HTTP 429")
    assert attempts(told) == [("failed", "rate_limit")]


def test_a_try_that_is_cut_off_is_told(ask: Asker, tmp_path: Path) -> None:
    """Waiting extends the client's own clock, so that the command's ends the second try."""
    busy = status("429 Too Many Requests", "", "retry-after-ms: 1500")
    with endpoint(busy, b"") as server:
        config = written(tmp_path, server.base_url, backoff_s=0.001)
        ask("--config", str(config), "--timeout", "1.5", "--json", "hi", expect=75)
    told = json.loads(ask.out)
    assert told["kind"] == "timeout"
    assert attempts(told) == [("failed", "rate_limit"), ("cancelled", None)]


# -- a configuration --------------------------------------------------------------------


def test_a_configuration_names_the_endpoints(ask: Asker, tmp_path: Path) -> None:
    """The role's own, whatever keys the others need."""
    with endpoint(answer("Hello")) as server:
        config = str(written(tmp_path, server.base_url))
        ask("--config", config, "--role", "judge", "hi")
        assert ask.err.startswith("try 1 at here: ok")
        assert "A_KEY_THAT_IS_NOT_SET" in ask.refused("--config", config, "--role", "vision", "hi")
    assert [body["model"] for body in server.bodies] == ["mine"]


def test_a_configuration_brings_its_clocks(ask: Asker, tmp_path: Path) -> None:
    """Without --timeout they hold as they are, with it as far as it allows."""
    with endpoint(b"") as server:
        config = str(written(tmp_path, server.base_url, first_token_s=0.1, attempts=1))
        ask("--config", config, "--json", "hi", expect=75)
        assert json.loads(ask.out)["detail"] == "first token: nothing within 0.1 s"
        config = str(written(tmp_path, server.base_url))
        ask("--config", config, "--timeout", "0.2", "--json", "hi", expect=75)
    assert attempts(json.loads(ask.out)) == [("failed", "timeout")]


def test_the_simulator_of_a_configuration_is_started_for_the_call(ask: Asker) -> None:
    """It answers the prompts of a run and says of any other what it is."""
    demo = str(ROOT / "config" / "demo.yaml")
    ask("--config", demo, "--json", "hi", expect=1)
    told = json.loads(ask.out)
    assert (told["outcome"], told["kind"]) == ("fatal", "bad_request")
    assert "This is a simulator" in told["detail"]


def test_the_simulator_needs_a_configuration(ask: Asker) -> None:
    said = ask.refused("--base-url", "twin", "--model", "m", "hi")
    assert "--config config/demo.yaml" in said


# -- nothing there ----------------------------------------------------------------------

PAGE = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>Nope</body></html>"


def test_a_wrong_path_shows_words_once_and_what_may_be_missing(ask: Asker) -> None:
    """A page of a web server, and the path that most servers want."""
    with endpoint(status("404 Not Found", PAGE)) as server:
        bare = server.base_url.removesuffix("/v1")
        ask("--base-url", bare, "--model", "m", "hi", expect=1)
        assert "<" not in ask.err
        assert ask.err.count("Nope") == 1
        assert f"is it {bare}/v1?" in ask.err
        ask("--base-url", server.base_url, "--model", "m", "hi", expect=1)
        assert "is it " not in ask.err


def test_usage_that_was_not_reported_is_unknown(ask: Asker) -> None:
    silent = chunked(sse("Hello"), sse(None, "stop"), b"data: [DONE]\n\n")
    with endpoint(SSE_HEAD + silent) as server:
        ask("--base-url", server.base_url, "--model", "m", "hi")
        assert "tokens unknown (the endpoint reported no usage)" in ask.err
        assert "0 prompt tokens" not in ask.err
        ask("--base-url", server.base_url, "--model", "m", "--json", "hi")
    assert json.loads(ask.out)["usage"] is None


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_to_ask_is_refused(ask: Asker, text: str) -> None:
    assert "TEXT is empty" in ask.refused("--base-url", "http://h/v1", "--model", "m", text)


# -- usage ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hi"], "--base-url"),
        (["--base-url", "http://h/v1", "hi"], "--model"),
        (["--base-url", "http://h/v1", "--config", "c.yaml", "hi"], "not allowed"),
        (["--base-url", "h:8000/v1", "--model", "m", "hi"], "like http://127.0.0.1:8000/v1"),
        (["--base-url", "http://h:port/v1", "--model", "m", "hi"], "like http://"),
        (["--base-url", "http:///v1", "--model", "m", "hi"], "like http://"),
        (["--base-url", "http://a b/v1", "--model", "m", "hi"], "like http://"),
        (["--base-url", "http://me:pw@h/v1", "--model", "m", "hi"], "--api-key-env"),
        (["--base-url", "http://h/v1/chat/completions", "--model", "m", "hi"], "is added"),
        (["--base-url", "http://h/v1?v=2", "--model", "m", "hi"], "is added"),
        (["--config", "nothing.yaml", "hi"], "nothing.yaml: no such file"),
        (["--config", "config/demo.yaml", "--model", "m", "hi"], "--model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_whom_to_ask_must_be_clear(ask: Asker, arguments: list[str], says: str) -> None:
    """Said before anything is sent, with what to do."""
    assert says in ask.refused(*arguments)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--api-key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
        (["--image", "missing.png"], "--image missing.png: cannot be read"),
        (["--image", "README.md"], "--image README.md: neither PNG nor JPEG"),
        (["--schema", "missing.json"], "--schema missing.json: cannot be read"),
        (["--schema", "README.md"], "--schema README.md:"),
        (["--extra-body", "[1]"], "--extra-body"),
        (["--extra-body", '{"model": "x"}'], "may not hold 'model'"),
        (["--timeout", "0"], "--timeout"),
        (["--timeout", "nan"], "--timeout"),
        (["--attempts", "0"], "--attempts"),
        (["--max-tokens", "-1"], "--max-tokens"),
        (["--temperature", "warm"], "--temperature"),
        (["--role", "poet"], "--role"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_to_send_must_be_clear(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    """The message names option and file."""
    monkeypatch.chdir(ROOT)
    with nobody() as url:
        assert says in ask.refused("--base-url", url, "--model", "m", *options, "hi")


# -- a process of its own ---------------------------------------------------------------


@pytest.mark.system
def test_a_process_leaves_an_answer_and_nothing_else(tmp_path: Path) -> None:
    """The ledger of the call is gone with it."""
    with endpoint(answer("Hello")) as server:
        arguments = ("--base-url", server.base_url, "--model", "m", "--json", "hi")
        with started(*arguments, folder=tmp_path) as process:
            out, err = ended(process, expect=0)
    assert json.loads(out)["text"] == "Hello"
    assert err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """No answer, no traceback, nothing left behind, and the endpoint is not kept busy."""
    with endpoint(b"") as server:
        arguments = ("--base-url", server.base_url, "--model", "m", "--json", "hi")
        with started(*arguments, folder=tmp_path) as process:
            assert server.asked.wait(50)
            process.send_signal(number)
            assert ended(process, expect=code) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system
def test_a_resolver_that_hangs_does_not_hold_the_exit() -> None:
    """Its thread cannot be cancelled; the command is over all the same."""
    stuck = (
        "import socket, threading; socket.getaddrinfo = lambda *a, **k: threading.Event().wait()"
    )
    arguments = ("--base-url", "http://a.name/v1", "--model", "m", "--timeout", "0.3", "--json")
    with started(*arguments, "hi", code=stuck) as process:
        out, _ = ended(process, expect=75)
    assert json.loads(out)["kind"] == "timeout"


@pytest.mark.system
def test_help_loads_no_room() -> None:
    """What the client needs takes longer to load than --help may take."""
    loaded = "print({'httpx', 'anyio'} & set(sys.modules))"
    with started("--help", code=f"import atexit; atexit.register(lambda: {loaded})") as process:
        out, err = ended(process, expect=0)
    assert "examples:" in out
    assert "exit codes:" in out
    assert out.splitlines()[-1] == "set()"
    assert err == ""
