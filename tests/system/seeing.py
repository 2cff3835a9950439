"""An endpoint that describes pictures, for ``bin/trm tree``."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from anyio.from_thread import start_blocking_portal

from tests.llm.server import Connection, answer, serving

__all__ = ["Question", "Seeing", "card_of", "config_of", "seeing"]

SUMMARIES = ("scene_summary", "event_description", "frame_summary")


class Question:
    """A request for a card. kind: its summary field; pictures: how many it carries."""

    def __init__(self, body: dict[str, object]) -> None:
        text = json.dumps(body)
        schema = json.dumps(body["response_format"])
        (self.kind,) = (name for name in SUMMARIES if f'"{name}"' in schema)
        self.pictures = text.count('"data:image/jpeg;base64,')
        self.time_range = text.partition("Time range: ")[2].partition("\\n")[0]
        self.again = "could not be read" in text
        self.text = text


def card_of(question: Question) -> bytes:
    """A whole answer with a card."""
    return answer(json.dumps({question.kind: f"What is seen at {question.time_range}."}))


Reply = Callable[[Question, int], bytes]


class Seeing:
    """reply: the response to a question, and its number from 1; empty: none, until they go."""

    def __init__(self, reply: Reply | None) -> None:
        self.base_url = ""
        self.questions: list[Question] = []
        self.stalled = threading.Event()
        self._reply = reply or (lambda question, _: card_of(question))

    @property
    def kinds(self) -> Counter[str]:
        return Counter(question.kind for question in self.questions)

    async def handle(self, connection: Connection) -> None:
        request = await connection.request()
        if request is None:
            return
        question = Question(json.loads(request[1]))
        self.questions.append(question)
        response = self._reply(question, len(self.questions))
        if response:
            await connection.send(response)
        else:
            self.stalled.set()
            await connection.until_gone()


@contextmanager
def seeing(reply: Reply | None = None) -> Iterator[Seeing]:
    """The command runs its own event loop, so the server has one of its own."""
    seen = Seeing(reply)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(seen.handle)) as server,
    ):
        seen.base_url = server.base_url
        yield seen


def config_of(folder: Path, base_url: str, *, name: str = "my.yaml", **llm: object) -> Path:
    """A configuration whose one endpoint has every role."""
    roles = ["search", "judge", "evolve", "vision"]
    here = {"name": "here", "base_url": base_url, "model": "sees", "roles": roles}
    quick = {"backoff_s": 0.001, "attempts": 2, "outage_s": 0.5}
    path = folder / name
    path.write_text(yaml.safe_dump({"llm": {"endpoints": [here], **quick, **llm}}))
    return path
