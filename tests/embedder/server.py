"""An embeddings endpoint on loopback whose vectors tell what was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from protocol.settings import EmbeddingSettings
from tests.llm.server import Connection, serving

__all__ = ["Embeddings", "embeddings", "response", "settings", "vector_of"]

Reply = Callable[[list[str]], bytes]


def settings(base_url: str | None = None, **changes: object) -> EmbeddingSettings:
    """Quick settings."""
    values: dict[str, object] = {
        "base_url": base_url,
        "model": "m",
        "api_key_env": None,
        "query_prefix": "",
        "document_prefix": "",
        "chunk_chars": 4000,
        "batch": 4,
        "concurrency": 2,
        "attempts": 3,
        "timeout_s": 10.0,
        "backoff_s": 0.001,
        "backoff_cap_s": 0.002,
        "index": "unused",
    }
    return EmbeddingSettings(**(values | changes))  # type: ignore[arg-type]  # field by field


def vector_of(text: str) -> list[float]:
    """Length, vowels and spaces: enough to tell texts apart."""
    return [float(len(text)), float(sum(c in "aeiou" for c in text)), float(text.count(" ")), 1.0]


def response(body: object, line: str = "200 OK", *headers: str) -> bytes:
    """A whole response; body: JSON, or bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {line}", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


def fine(texts: list[str]) -> bytes:
    """Every text's vector, the last first: order is what ``index`` says."""
    rows = [{"index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]
    return response({"data": rows[::-1]})


class Embeddings:
    """replies: for the first requests, one each; then every request is answered well."""

    def __init__(self, *replies: bytes | Reply) -> None:
        self.base_url = ""
        self.heads: list[bytes] = []
        self.batches: list[list[str]] = []
        self._replies = replies

    async def handle(self, connection: Connection) -> None:
        while (request := await connection.request()) is not None:
            head, raw = request
            body = json.loads(raw)
            assert body["model"] == "m"
            assert body["encoding_format"] == "float"
            self.heads.append(head)
            texts: list[str] = body["input"]
            self.batches.append(texts)
            number = len(self.batches) - 1
            reply = self._replies[number] if number < len(self._replies) else fine
            sent = reply if isinstance(reply, bytes) else reply(texts)
            if not sent:
                return
            await connection.send(sent)


@asynccontextmanager
async def embeddings(*replies: bytes | Reply) -> AsyncIterator[Embeddings]:
    """The endpoint. An empty reply hangs up."""
    seen = Embeddings(*replies)
    async with serving(seen.handle) as server:
        seen.base_url = server.base_url
        yield seen
