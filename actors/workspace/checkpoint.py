"""``checkpoint.json``: every stateful actor's snapshot at one instant, in one file.

Replaced atomically; the one before is kept as ``checkpoint.json.prev``. A file whose
hash is wrong is never used: the previous one is, and the log says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread
import msgspec
import structlog

from actors.workspace.atomic import OS_FILES, FileSystem, write_atomic
from actors.workspace.errors import BadFile
from actors.workspace.files import read_json, sha256_hex

__all__ = ["CheckpointStore"]

_SCHEMA = 1
_REMEDY = "restore it from a copy, or start a new workspace"
_log = structlog.stdlib.get_logger()


class _Content(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hash is taken over. states: each actor's own JSON, sorted by name."""

    schema: int
    run_id: str
    label: str
    states: dict[str, msgspec.Raw]


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file. Raw keeps the content's bytes as they were hashed."""

    sha256: str
    content: msgspec.Raw


class CheckpointStore:
    """The checkpoint of one run. path: usually ``checkpoint.json`` in the workspace.

    One writer at a time.
    """

    def __init__(self, path: Path, run_id: str, *, files: FileSystem = OS_FILES) -> None:
        self._path = path
        self._run_id = run_id
        self._files = files

    def __repr__(self) -> str:
        return f"CheckpointStore({str(self._path)!r}, run_id={self._run_id!r})"

    @property
    def previous(self) -> Path:
        """Where the checkpoint before the last one is kept."""
        return self._path.with_name(self._path.name + ".prev")

    async def write(self, label: str, states: Mapping[str, bytes]) -> None:
        """Replace the checkpoint, in a worker thread that a cancellation waits for.

        states: JSON bytes by actor name.

        Raises ValueError naming an actor whose state is not JSON, OSError if the disk
        refuses; the old checkpoint then stands, whole.
        """
        await anyio.to_thread.run_sync(self._write, label, states)

    def load(self) -> Mapping[str, bytes] | None:
        """The states of the last checkpoint that is whole; None: there never was one.

        Warns in the log when that is the previous one.
        Raises BadFile if there are checkpoints and none is usable, or they are another run's.
        """
        if not self._path.exists() and not self.previous.exists():
            return None
        try:
            content = self._read(self._path)
        except BadFile as problem:
            if not self.previous.exists():
                raise
            content = self._read(self.previous)
            _log.warning(
                "checkpoint.fallback",
                file=str(self._path),
                problem=problem.what,
                used=str(self.previous),
                label=content.label,
            )
        if content.run_id != self._run_id:
            what = f"is a checkpoint of run {content.run_id!r}, not of {self._run_id!r}"
            raise BadFile(self._path, what, "resume the workspace that it belongs to")
        return {name: bytes(state) for name, state in content.states.items()}

    def damage(self) -> BadFile | None:
        """What is wrong with the last checkpoint; None: it is whole, or there never was one.

        ``load`` then uses the one before it, if that is whole.
        """
        if not self._path.exists() and not self.previous.exists():
            return None
        try:
            self._read(self._path)
        except BadFile as problem:
            return problem
        return None

    def _write(self, label: str, states: Mapping[str, bytes]) -> None:
        content = msgspec.json.encode(
            _Content(
                schema=_SCHEMA,
                run_id=self._run_id,
                label=label,
                states={name: _checked(name, states[name]) for name in sorted(states)},
            )
        )
        data = msgspec.json.encode(_File(sha256=sha256_hex(content), content=msgspec.Raw(content)))
        if self._path.exists():
            self._keep_previous()
        write_atomic(self._path, data, files=self._files)

    def _keep_previous(self) -> None:
        """Copied, not renamed: at no instant is there no checkpoint."""
        try:
            self._read(self._path)
        except BadFile as problem:
            _log.warning("checkpoint.damaged", file=str(self._path), problem=problem.what)
            return  # the previous one is the better one: keep it
        write_atomic(self.previous, self._path.read_bytes(), files=self._files)

    def _read(self, path: Path) -> _Content:
        stored = read_json(path, _File, _REMEDY)
        if sha256_hex(bytes(stored.content)) != stored.sha256:
            raise BadFile(path, "its sha256 is wrong", _REMEDY)
        try:
            content = msgspec.json.decode(stored.content, type=_Content)
        except msgspec.DecodeError as error:
            raise BadFile(path, f"content: {error}", _REMEDY) from error
        if content.schema != _SCHEMA:
            what = f"schema is {content.schema}, this program reads {_SCHEMA}"
            raise BadFile(path, what, "resume with the program that wrote it")
        return content


def _checked(name: str, state: bytes) -> msgspec.Raw:
    try:
        msgspec.json.decode(state)
    except msgspec.DecodeError as error:
        raise ValueError(f"the state of actor {name!r} is not JSON: {error}") from error
    return msgspec.Raw(state.strip())
