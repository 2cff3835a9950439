"""Undisturbed runs and seeds, made once: what all the disturbed ones are held against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.support import long_part
from tests.support.harness_db import Row, made_up_rows, steps_json, write_harness
from tests.support.long_world import write_documents, write_trees, write_world
from tests.system.runs import SMALL, result_of, run_to_end, settings
from tests.system.seed_commands import DEMO, Trm, leave_out, scratch, trm_running


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of a small run that nothing happened to."""
    workspace = tmp_path_factory.mktemp("undisturbed") / "run"
    run_to_end(*settings(SMALL), "--workspace", str(workspace))
    return workspace


@pytest.fixture(scope="session")
def undisturbed_result(undisturbed: Path) -> dict[str, object]:
    """What it left behind."""
    return result_of(undisturbed)


@pytest.fixture
def trm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Trm]:
    """``bin/trm`` in this process; logging and the environment are left as they were."""
    monkeypatch.delenv("REDIS_URL", raising=False)  # a shared cache would know every answer
    yield Trm(capsys)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a pass over 36 of the demo's videos needs."""
    folder = tmp_path_factory.mktemp("small")
    leave_out(folder / "exclude.txt", 36)
    return folder


@pytest.fixture(scope="session")
def whole(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A seed from scratch that nothing happened to, made once."""
    out = tmp_path_factory.mktemp("whole") / "seed"
    with trm_running(*scratch(out, small)) as run:
        run.finish(0)
    return out


@pytest.fixture(scope="session")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The long part in two forms, its world, trees and documents, and a harness.db."""
    folder = tmp_path_factory.mktemp("long")
    questions = long_part.questions()
    long_part.write_official(folder)
    write_world(folder / "world.json", questions)
    write_trees(folder / "trees", questions)
    write_documents(folder, DEMO)
    rows = made_up_rows(questions)
    # two questions were answered again under the same run id
    rows += [
        Row(rows[at].question, "A", "finished", steps_json(rows[at].question, "A"))
        for at in (4, 500)
    ]
    write_harness(folder / "harness.db", rows)
    jsonl = long_part.write_jsonl(folder)
    (folder / "my.yaml").write_text(
        "run: {name: long}\n"
        f"data: {{seed: seed, questions: {jsonl.name}, trees: trees}}\n"
        "twin: {world: world.json}\n",
        encoding="utf-8",
    )
    return folder
