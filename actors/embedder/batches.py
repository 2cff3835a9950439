"""Texts that wait together travel together.

A sender takes what waits, up to a batch, queries first: a query is one text and somebody waits
for it, a tree is hundreds. While requests are in flight the queue fills, so that batches grow
with the load and a lone query never waits for company.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio.lowlevel import checkpoint

from protocol.embedder import EmbedFailed, EmbedUse, Vectors

__all__ = ["Batches", "Send"]

Send = Callable[[tuple[str, ...], EmbedUse], Awaitable[tuple[bytes, ...] | EmbedFailed]]
"""Turns a batch of texts into as many vectors."""


class _Text:
    """One text that waits. given_up: its asker is gone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.settled = anyio.Event()
        self.result: bytes | EmbedFailed | None = None
        self.given_up = False

    def settle(self, result: bytes | EmbedFailed) -> None:
        self.result = result
        self.settled.set()


class Batches:
    """The queue between askers and senders. most: texts per batch. ``serve`` must run."""

    def __init__(self, send: Send, most: int) -> None:
        self._send = send
        self._most = most
        self._waiting: dict[EmbedUse, deque[_Text]] = {"query": deque(), "document": deque()}
        self._filled = anyio.Event()

    async def embed(self, texts: Sequence[str], use: EmbedUse) -> Vectors | EmbedFailed:
        """The vectors of the texts; the first failure among them fails all of them."""
        mine = [_Text(text) for text in texts]
        self._waiting[use].extend(mine)
        self._filled.set()
        found: list[bytes] = []
        try:
            for text in mine:
                await text.settled.wait()
                assert text.result is not None, "a settled text has a result"
                if isinstance(text.result, EmbedFailed):
                    return text.result
                found.append(text.result)
        finally:
            for text in mine:
                text.given_up = True
        return Vectors(vectors=tuple(found))

    async def serve(self) -> None:
        """Send batches for ever. Run as many of these as requests may be in flight."""
        while True:
            use, batch = await self._next()
            await self._deliver(use, batch)

    async def _next(self) -> tuple[EmbedUse, list[_Text]]:
        """What waits, as one batch of one use."""
        uses: tuple[EmbedUse, ...] = ("query", "document")
        while True:
            for use in uses:
                queue = self._waiting[use]
                batch: list[_Text] = []
                while queue and len(batch) < self._most:
                    text = queue.popleft()
                    if not text.given_up:
                        batch.append(text)
                if batch:
                    return use, batch
            if self._filled.is_set():  # else another sender waits for this one already
                self._filled = anyio.Event()
            await self._filled.wait()

    async def _deliver(self, use: EmbedUse, batch: Sequence[_Text]) -> None:
        """Settle every text. A refused batch is halved until only refused texts fail.

        An asker gives up at its first refused text: what else it waits for is not sent then,
        so that a server that refuses everything is asked a few times and not once per text.
        """
        wanted = [text for text in batch if not text.given_up]
        if not wanted:
            return
        reply = await self._send(tuple(text.text for text in wanted), use)
        if isinstance(reply, EmbedFailed):
            if reply.kind == "bad_request" and len(wanted) > 1:
                middle = len(wanted) // 2
                await self._deliver(use, wanted[:middle])
                await self._deliver(use, wanted[middle:])
                return
            for text in wanted:
                text.settle(reply)
        else:
            for text, vector in zip(wanted, reply, strict=True):
                text.settle(vector)
        await checkpoint()  # askers whose text was refused give up before more is sent for them
