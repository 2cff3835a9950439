"""An OpenAI-compatible ``/embeddings``: one batch, tried again while failures are transient."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import anyio
import httpx
import msgspec

from actors.embedder.vectors import packed
from protocol.embedder import EmbedFailed, EmbedFailure
from protocol.settings import EmbeddingSettings

__all__ = ["EmbeddingClient", "Note", "Try", "resolve_key"]

_BY_STATUS: Mapping[int, EmbedFailure] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    409: "server_error",
    425: "server_error",
    429: "rate_limit",
    501: "bad_request",
}
_FATAL: frozenset[EmbedFailure] = frozenset({"bad_request", "auth", "quota", "body"})
_NO_QUOTA = re.compile(r"insufficient_quota|quota_exceeded|billing|payment_required")
_DETAIL_CHARS = 300


class _Row(msgspec.Struct, frozen=True):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct, frozen=True):
    data: list[_Row]
    usage: object = None  # for the accounts; whatever it is, the vectors are good


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One request. call: a name of its texts; number: from 1. started: in UTC.

    outcome: ``ok`` or a failure's kind. tokens: as the server counted them; 0: it did not say.
    """

    call: str
    number: int
    started: datetime
    outcome: str
    detail: str
    seconds: float
    tokens: int


Note = Callable[[Try], Awaitable[None]]
"""Takes every try, when it has ended and before its vectors go out."""


class _Failure(Exception):
    """One try that brought nothing."""

    def __init__(self, kind: EmbedFailure, detail: str, retry_after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.kind: EmbedFailure = kind
        self.retry_after_s = retry_after_s


def resolve_key(settings: EmbeddingSettings, environ: Mapping[str, str]) -> str | None:
    """The server's key; None: the settings name none. Raises ValueError if it is not set."""
    if settings.api_key_env is None:
        return None
    key = environ.get(settings.api_key_env, "").strip()
    if not key:
        raise ValueError(
            f"environment variable {settings.api_key_env} is not set; "
            "the embedding server takes its key from it"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError(
            f"environment variable {settings.api_key_env} holds characters that no key has "
            "(a line break or blank?); the embedding server needs it"
        )
    return key


class EmbeddingClient:
    """Speaks to the server of ``settings``. note: keeps the accounts."""

    def __init__(self, settings: EmbeddingSettings, key: str | None, note: Note) -> None:
        assert settings.base_url is not None, "the configuration was checked"
        self._settings = settings
        self._note = note
        self._url = f"{settings.base_url.rstrip('/')}/embeddings"
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(None),  # one clock for the whole try, below
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            limits=httpx.Limits(max_connections=settings.concurrency),
            trust_env=False,  # a proxy of the environment is no part of the configuration
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def embed(self, texts: tuple[str, ...]) -> tuple[bytes, ...] | EmbedFailed:
        """The texts' vectors, in their order. Raises what ``note`` raises."""
        attempts = self._settings.attempts
        call = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()
        for attempt in range(1, attempts + 1):
            started, begun = datetime.now(UTC), anyio.current_time()
            noted = Try(
                call=call,
                number=attempt,
                started=started,
                outcome="ok",
                detail="",
                seconds=0.0,
                tokens=0,
            )
            try:
                vectors, tokens = await self._once(texts)
                seconds = anyio.current_time() - begun
                await self._note(msgspec.structs.replace(noted, seconds=seconds, tokens=tokens))
                return vectors
            except _Failure as failure:
                seconds = anyio.current_time() - begun
                changes = {"outcome": failure.kind, "detail": str(failure), "seconds": seconds}
                await self._note(msgspec.structs.replace(noted, **changes))
                fatal = failure.kind in _FATAL
                if fatal or attempt == attempts:
                    tried = f" (try {attempt} of {attempts})"
                    detail = f"{self._url}: {failure}{tried}"
                    return EmbedFailed(kind=failure.kind, fatal=fatal, detail=detail)
                await anyio.sleep(self._pause_s(attempt, failure, texts))
        raise AssertionError("the last try returns")

    def _pause_s(self, attempt: int, failure: _Failure, texts: tuple[str, ...]) -> float:
        """Doubled each time, with jitter that follows from the texts; or what the server asks."""
        settings = self._settings
        ladder = settings.backoff_s * float(2 ** min(attempt - 1, 30))
        digest = hashlib.sha256(f"{attempt}/{texts[0]}".encode("utf-8", "replace")).digest()
        jitter = 0.5 + digest[0] / 510
        return min(max(ladder * jitter, failure.retry_after_s), settings.backoff_cap_s)

    async def _once(self, texts: tuple[str, ...]) -> tuple[tuple[bytes, ...], int]:
        """One try: the vectors, and the tokens that were counted. Raises _Failure."""
        settings = self._settings
        body = {"model": settings.model, "input": list(texts), "encoding_format": "float"}
        try:
            content = msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise _Failure("bad_request", "a text holds half of a surrogate pair") from error
        try:
            with anyio.fail_after(settings.timeout_s):
                response = await self._http.post(
                    self._url, content=content, headers={"Content-Type": "application/json"}
                )
        except TimeoutError as error:
            raise _Failure("timeout", f"no reply within {settings.timeout_s:g} s") from error
        except httpx.HTTPError as error:
            raise _Failure("transport", f"{type(error).__name__}: {error}") from error
        if response.status_code != 200:
            raise _of_status(response)
        return _vectors(response.content, len(texts))


def _of_status(response: httpx.Response) -> _Failure:
    said = " ".join(response.text.split())[:_DETAIL_CHARS]
    status = response.status_code
    kind = _BY_STATUS.get(status)
    if kind is None:
        kind = "server_error" if status >= 500 else "bad_request"
    if kind == "rate_limit" and _NO_QUOTA.search(said):
        kind = "quota"
    return _Failure(kind, f"status {status}: {said or 'no text'}", _retry_after_s(response))


def _retry_after_s(response: httpx.Response) -> float:
    """The header's seconds; 0 if it is absent or a date, which our own ladder replaces."""
    value = response.headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d+)?", value) else 0.0


def _vectors(content: bytes, wanted: int) -> tuple[tuple[bytes, ...], int]:
    """The vectors of a reply in the order of the texts, and its tokens. Raises _Failure."""
    try:
        reply = msgspec.json.decode(content, type=_Reply)
    except msgspec.ValidationError as error:
        raise _Failure("body", f"the reply does not fit: {error}") from error
    except ValueError as error:  # cut off: a proxy's page, a broken server
        raise _Failure("server_error", f"the reply is no JSON: {error}") from error
    rows = reply.data
    by_index = {row.index: row.embedding for row in rows}
    if sorted(by_index) != list(range(wanted)) or len(rows) != wanted:
        raise _Failure("body", f"{len(rows)} vectors for {wanted} texts, or wrongly numbered")
    try:
        vectors = packed([by_index[index] for index in range(wanted)])
    except ValueError as error:
        raise _Failure("body", str(error)) from error
    return vectors, _tokens(reply.usage)


def _tokens(usage: object) -> int:
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) and 0 <= counted < 2**53 else 0
