"""Serves ``protocol.embedder`` with a server or a model on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from anyio import to_thread

from actors.embedder.batches import Batches
from actors.embedder.client import EmbeddingClient, Try, resolve_key
from actors.embedder.local import LocalModel, check_folder
from actors.runtime.actor import Actor, Context, handles
from actors.runtime.address import Address
from actors.runtime.errors import AskFailed
from protocol.embedder import Embed, EmbedFailed, EmbedUse, Vectors
from protocol.ledger import Record
from protocol.rows import AttemptRow
from protocol.settings import EmbeddingSettings

__all__ = ["ROLE", "EmbedderActor", "check_embedder"]

ROLE = "embed"
"""``role`` of its rows in ``attempts``: counted and shown, but no chats, which limits are for."""


def check_embedder(
    settings: EmbeddingSettings, folder: Path | None, environ: Mapping[str, str] = os.environ
) -> None:
    """What can be known before a start. Raises ValueError saying what to do."""
    resolve_key(settings, environ)
    if folder is not None:
        check_folder(folder)


class EmbedderActor(Actor):
    """Texts as vectors. folder: of the model on this machine; None: a server is asked.

    ledger: gets a row per request to the server, before its vectors go out.
    environ: where the server's key is. Raises ValueError if it is missing.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        folder: Path | None,
        ledger: Address,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._ledger = ledger
        self._key = resolve_key(settings, environ)
        self._client: EmbeddingClient | None = None
        self._model: LocalModel | None = None
        self._batches = Batches(self._send, settings.batch)

    async def on_start(self, context: Context) -> None:
        """Open the client, or load the model. Raises ValueError if that cannot be used."""
        settings = self._settings
        if self._folder is not None:
            self._model = await to_thread.run_sync(LocalModel, self._folder)
            senders = 1  # numpy uses the cores by itself
        else:
            self._client = EmbeddingClient(settings, self._key, self._account)
            senders = settings.concurrency
        for _ in range(senders):
            context.tasks.start_soon(self._batches.serve)

    async def on_stop(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    @handles(Embed)
    async def embed(self, request: Embed) -> Vectors | EmbedFailed:
        """Turn texts into vectors."""
        return await self._batches.embed(request.texts, request.use)

    async def _send(self, texts: tuple[str, ...], use: EmbedUse) -> tuple[bytes, ...] | EmbedFailed:
        settings = self._settings
        prefix = settings.query_prefix if use == "query" else settings.document_prefix
        prefixed = tuple(f"{prefix}{text}" for text in texts)
        if self._model is not None:
            return await to_thread.run_sync(partial(self._model.embed, prefixed))
        assert self._client is not None, "senders run only after on_start"
        try:
            return await self._client.embed(prefixed)
        except AskFailed as error:
            detail = f"the request could not be booked: {error}"
            return EmbedFailed(kind="crash", fatal=False, detail=detail)

    async def _account(self, tried: Try) -> None:
        """One row. Raises AskFailed if it cannot be stored."""
        row = AttemptRow(
            call=tried.call,
            attempt=tried.number,
            started=tried.started.isoformat(timespec="microseconds"),
            role=ROLE,
            endpoint=self._settings.base_url or "",
            outcome=tried.outcome,
            detail=tried.detail,
            seconds=tried.seconds,
            first_token_s=None,
            prompt_tokens=tried.tokens,
            completion_tokens=0,
            cached_tokens=0,
            reasoning_tokens=0,
            usd=None,
        )
        await self._ledger.ask(Record(rows=(row,)))
