"""Made-up questions and frozen folders for this room's tests, and a context without a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from actors.dataset.fingerprint import dataset_fingerprint, sha256_hex
from actors.dataset.pools import encode_pools
from protocol.dataset import Question
from protocol.seed import Pools, SeedInfo, SplitManifest, SplitParameters

PARAMETERS = SplitParameters(seed=7, n_trainval=10, n_test=5, val_ratio=0.4, val_wrong_min=2)


class BareContext:
    """A ``Context`` that only logs."""

    name = "dataset"
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


def question(
    video: int,
    number: int = 1,
    task_type: str = "Counting",
    *,
    sub_category: str | None = None,
) -> Question:
    """Question ``<video>-<number>``."""
    return Question(
        question_id=f"{video:03d}-{number}",
        video_id=f"{video:03d}",
        task_type=task_type,
        question="How many?",
        options=("One.", "Two.", "Three.", "Four."),
        answer="B",
        sub_category=sub_category,
    )


def raw(item: Question) -> dict[str, object]:
    """The object of one line of a questions.jsonl."""
    built: dict[str, object] = msgspec.to_builtins(item)
    return {key: value for key, value in built.items() if key != "type"}


def write_jsonl(path: Path, questions: Iterable[Question]) -> Path:
    """A questions.jsonl."""
    path.write_bytes(b"\n".join(msgspec.json.encode(raw(q)) for q in questions) + b"\n")
    return path


def pools_of(diag: Iterable[Question], val: Iterable[Question], test: Iterable[Question]) -> Pools:
    """Pools by question."""
    return Pools(
        diag=tuple(sorted(q.question_id for q in diag)),
        val=tuple(sorted(q.question_id for q in val)),
        test=tuple(sorted(q.question_id for q in test)),
    )


def freeze(
    folder: Path, pools: Pools, questions: Iterable[Question]
) -> tuple[SplitManifest, SeedInfo]:
    """Write the three frozen files of ``folder`` as they belong together."""
    data = encode_pools(pools)
    manifest = SplitManifest(
        pools_sha256=sha256_hex(data),
        baseline_run_id="base-1",
        parameters=PARAMETERS,
        dataset_fingerprint=dataset_fingerprint(questions),
        tool_version="0.1.0",
    )
    seed = SeedInfo(
        name="made-up",
        baseline_run_id="base-1",
        dataset_fingerprint=manifest.dataset_fingerprint,
        pools_sha256=manifest.pools_sha256,
        skills_version="v1",
        prompts_version="v1",
        subtitles=True,
        agent="model m",
        tool_version="0.1.0",
    )
    (folder / "pools.json").write_bytes(data)
    (folder / "split_manifest.json").write_bytes(msgspec.json.encode(manifest))
    (folder / "seed.json").write_bytes(msgspec.json.encode(seed))
    return manifest, seed
