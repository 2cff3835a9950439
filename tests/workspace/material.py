"""Made-up documents, parts of a seed and file systems with a will of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from actors.workspace.atomic import OS_FILES, FileSystem
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.create import init_workspace_from_seed
from actors.workspace.files import sha256_hex
from actors.workspace.seed import Seed, init_seed
from protocol.keys import slug
from protocol.seed import BaselinePrediction, SplitManifest, SplitParameters
from protocol.workspace import Manifest

RUN = "base-1"
POOLS = b'{"diag":["001-1","001-2"],"test":["003-1"],"val":["002-1"]}'


class BareContext:
    """A ``Context`` that only logs."""

    name = "workspace"
    incarnation = 1
    restored: bytes | None = None
    draining = False

    def __init__(self) -> None:
        self.log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger()

    @property
    def tasks(self) -> TaskGroup:
        return anyio.create_task_group()

    async def checkpoint(self, label: str) -> None:
        raise AssertionError("this room makes no checkpoint")


class Recording(FileSystem):
    """The real calls, written down in their order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def create(self, path: Path) -> int:
        self.calls.append("create")
        return super().create(path)

    def write(self, fd: int, data: bytes) -> None:
        self.calls.append("write")
        super().write(fd, data)

    def fsync(self, fd: int) -> None:
        self.calls.append("fsync")
        super().fsync(fd)

    def replace(self, source: Path, target: Path) -> None:
        self.calls.append(f"replace {target.name}")
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        self.calls.append(f"sync {folder.name}")
        super().sync_folder(folder)


class Failing(Recording):
    """The n-th call (from 0) raises instead of happening, as a full disk does."""

    def __init__(self, at: int, error: BaseException) -> None:
        super().__init__()
        self._at = at
        self._error = error

    def _maybe(self) -> None:
        if len(self.calls) == self._at:
            raise self._error

    def create(self, path: Path) -> int:
        self._maybe()
        return super().create(path)

    def write(self, fd: int, data: bytes) -> None:
        if len(self.calls) == self._at:
            super().write(fd, data[: len(data) // 2])
            raise self._error
        super().write(fd, data)

    def fsync(self, fd: int) -> None:
        self._maybe()
        super().fsync(fd)

    def replace(self, source: Path, target: Path) -> None:
        self._maybe()
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        self._maybe()
        super().sync_folder(folder)


@contextmanager
def unchanged(*paths: Path) -> Iterator[None]:
    """The files hold the same bytes after the block."""
    before = [path.read_bytes() for path in paths]
    yield
    assert [path.read_bytes() for path in paths] == before


def skill_text(task_type: str, body: str = "Look twice.") -> str:
    return (
        f"---\nname: {slug(task_type)}\ndescription: made up\ntask_type: {task_type}\n---\n"
        f"# {task_type}\n\n## Steps\n- {body}\n"
    )


def write_documents(folder: Path) -> tuple[Path, Path]:
    """Unsealed skills and prompts."""
    skills, prompts = folder / "my-skills", folder / "my-prompts"
    (prompts / "tools").mkdir(parents=True)
    skills.mkdir()
    for task_type in ("_default", "Counting Problem"):
        path = skills / f"{slug(task_type)}.md"
        path.write_text(skill_text(task_type), encoding="utf-8")
    (prompts / "system.md").write_text("You answer questions.\n", encoding="utf-8")
    (prompts / "tools" / "view_node.md").write_text("view_node: look.\n", encoding="utf-8")
    return skills, prompts


def prediction(question_id: str, *, right: bool = True) -> BaselinePrediction:
    return BaselinePrediction(
        question_id=question_id,
        video_id=question_id[:3],
        task_type="Counting Problem",
        letter="A",
        right=right,
        confidence=0.5,
    )


def split_manifest(pools: bytes = POOLS, run_id: str = RUN) -> SplitManifest:
    return SplitManifest(
        pools_sha256=sha256_hex(pools),
        baseline_run_id=run_id,
        parameters=SplitParameters(seed=1, n_trainval=2, n_test=1, val_ratio=0.4, val_wrong_min=0),
        dataset_fingerprint="d" * 64,
        tool_version="0.1.0",
    )


def write_parts(folder: Path, pools: bytes = POOLS) -> None:
    """baseline.db, pools.json, split_manifest.json, documents: what a seed is made of."""
    folder.mkdir(exist_ok=True)
    (folder / "pools.json").write_bytes(pools)
    manifest = msgspec.json.encode(split_manifest(pools))
    (folder / "split_manifest.json").write_bytes(manifest)
    if not (folder / "baseline.db").exists():
        ids = ("001-1", "001-2", "002-1", "003-1")
        make_baseline_db(folder / "baseline.db", RUN, [prediction(i) for i in ids])
        write_documents(folder)


def make_seed(parts: Path, out: Path, *, force: bool = False) -> Seed:
    """A seed of the parts."""
    return init_seed(
        out,
        "made-up",
        baseline_run_id=RUN,
        baseline_db=parts / "baseline.db",
        pools_json=parts / "pools.json",
        split_manifest=parts / "split_manifest.json",
        skills_dir=parts / "my-skills",
        prompts_dir=parts / "my-prompts",
        subtitles=True,
        agent="model m",
        tool_version="0.1.0",
        force=force,
    )


def new_workspace(
    seed: Path, workspace: Path, run_id: str, *, files: FileSystem = OS_FILES
) -> Manifest:
    """A workspace with made-up fingerprints and one further file."""
    return init_workspace_from_seed(
        seed,
        workspace,
        run_id,
        settings_sha256="5" * 64,
        trees_sha256="7" * 64,
        beside={"config.yaml": b"run: {}\n"},
        files=files,
    )
