"""Endpoints that can be checked: whole chat servers in a thread, good or bad on purpose."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from anyio.from_thread import start_blocking_portal
from PIL import Image

from tests.llm.server import SSE_HEAD, Connection, answer, chunked, serving

__all__ = ["Body", "Served", "good", "refusal", "served", "thinking", "tool_call", "written"]

Body = Mapping[str, object]
Talk = Callable[[Body], bytes]

_ACTION = {
    "thought": "I look first.",
    "action": {"tool": "search_similar", "args": {"query": "boat", "k": None}},
}
_VERDICT = {
    "calls": [],
    "missed_nodes": [],
    "evidence_sufficient": False,
    "reasoning_failure": None,
    "finding": "It stopped too early.",
    "rule": "none",
    "followed": "none",
    "cause": "defect",
}


def good(body: Body) -> bytes:
    """What a server that can do everything says."""
    said = json.dumps(body["messages"])
    if "image_url" in said:
        return answer(_colour(said))
    if body.get("tools"):
        return tool_call("search_similar", {"query": "boat"})
    form = json.dumps(body.get("response_format", ""))
    if "legs" in form:
        return answer('{"colour": "blue", "legs": 8}')
    if "missed_nodes" in form:
        return answer(json.dumps(_VERDICT), usage=(1500, 60))
    if "edits" in form:
        return answer('{"suggestions": [], "edits": [], "notes": []}', usage=(2500, 20))
    if "thought" in form:
        return answer(json.dumps(_ACTION), usage=(2000, 50))
    return answer("Hello.")


def _colour(said: str) -> str:
    """Looks at the picture."""
    data = base64.b64decode(said.partition("base64,")[2].partition('"')[0])
    red, _, blue = Image.open(io.BytesIO(data)).convert("RGB").getpixel((5, 5))  # type: ignore[misc]  # three bands
    return "It is red." if red > blue else "It is blue."


def tool_call(name: str, arguments: object) -> bytes:
    """A streamed answer that is one tool call."""
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    deltas: tuple[dict[str, object], ...] = ({"tool_calls": [call]}, {})
    events = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in zip(deltas, (None, "tool_calls"), strict=True)
    ]
    parts = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    return SSE_HEAD + chunked(*parts, b"data: [DONE]\n\n")


def thinking(_: Body) -> bytes:
    """Thoughts, and then nothing."""
    events = [
        {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    parts = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    return SSE_HEAD + chunked(*parts, b"data: [DONE]\n\n")


def refusal(status: str, message: str) -> bytes:
    """An error as OpenAI's."""
    return _whole(status, json.dumps({"error": {"message": message}}))


def _whole(status: str, body: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", body]
    return "\r\n".join(lines).encode()


class Served:
    """A server. root: without ``/v1``. asked: every chat's body."""

    def __init__(self, talk: Talk, models: Sequence[Body] | None, prefix: str) -> None:
        self.root = ""
        self.asked: list[Body] = []
        self._talk = talk
        self._models = models
        self._prefix = prefix

    @property
    def url(self) -> str:
        """The base URL of a configuration."""
        return f"{self.root}/v1"

    async def handle(self, connection: Connection) -> None:
        """Answer requests until the client goes."""
        while (request := await connection.request()) is not None:
            method, path, _ = request[0].split(b"\r\n", 1)[0].decode().split(" ")
            await connection.send(self._reply(method, path, request[1]))

    def _reply(self, method: str, path: str, body: bytes) -> bytes:
        if (method, path) == ("GET", f"{self._prefix}/models") and self._models is not None:
            return _whole("200 OK", json.dumps({"data": self._models}))
        if (method, path) == ("POST", f"{self._prefix}/chat/completions"):
            self.asked.append(json.loads(body))
            return self._talk(self.asked[-1])
        return refusal("404 Not Found", "no such route")


@contextmanager
def served(
    talk: Talk = good, models: Sequence[Body] | None = ({"id": "m", "max_model_len": 65536},)
) -> Iterator[Served]:
    """A server in a thread: the command has an event loop of its own. models: None: no list."""
    seen = Served(talk, models, "/v1")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(seen.handle)) as server,
    ):
        seen.root = server.base_url.removesuffix("/v1")
        yield seen


def written(folder: Path, *endpoints: Mapping[str, object], **sections: object) -> Path:
    """A configuration with these endpoints, small clocks, and two classes that train."""
    named = [
        {"name": f"e{number}", "model": "m", "roles": ["search", "judge", "evolve"]} | dict(one)
        for number, one in enumerate(endpoints, start=1)
    ]
    clocks = {"connect_s": 2.0, "first_token_s": 5.0, "attempt_s": 8.0, "total_s": 10.0}
    tree: dict[str, object] = {
        "llm": {"endpoints": named, "backoff_s": 0.01, **clocks},
        "data": {"trainable_min_units": 30},
        "run": {"name": "mine", "workspaces": str(folder / "workspaces")},
    }
    for name, value in sections.items():
        below = tree.get(name, {})
        assert isinstance(below, dict)
        assert isinstance(value, dict)
        tree[name] = below | value
    path = folder / "my.yaml"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path
