"""Serves ``protocol.embedder`` with a server or a model on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from anyio import to_thread

from actors.embedder.batches import Batches
from actors.embedder.client import EmbeddingClient, resolve_key
from actors.embedder.local import LocalModel, check_folder
from actors.runtime.actor import Actor, Context, handles
from protocol.embedder import Embed, EmbedFailed, EmbedUse, Vectors
from protocol.settings import EmbeddingSettings

__all__ = ["EmbedderActor", "check_embedder"]


def check_embedder(
    settings: EmbeddingSettings, folder: Path | None, environ: Mapping[str, str] = os.environ
) -> None:
    """What can be known before a start. Raises ValueError saying what to do."""
    resolve_key(settings, environ)
    if folder is not None:
        check_folder(folder)


class EmbedderActor(Actor):
    """Texts as vectors. folder: of the model on this machine; None: a server is asked.

    environ: where the server's key is. Raises ValueError if it is missing.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        folder: Path | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._folder = folder
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
            self._client = EmbeddingClient(settings, self._key)
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
        return await self._client.embed(prefixed)
