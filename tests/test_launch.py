"""All that is wrong with a fresh run is told at once, in the order in which one mends it."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from actors.config import ROOT, ConfigError
from actors.dataset.errors import DataError
from actors.launch import fresh
from actors.workspace.errors import WorkspaceError

DEMO = ROOT / "seeds" / "demo"


def refused(folder: Path, text: str, *assignments: str) -> list[str]:
    """The lines of the error; nothing may have been written."""
    (folder / "my.yaml").write_text(text, encoding="utf-8")
    before = sorted(folder.rglob("*"))
    with pytest.raises((ConfigError, DataError, WorkspaceError)) as error:
        fresh(folder / "my.yaml", assignments, folder / "run")
    assert sorted(folder.rglob("*")) == before
    return str(error.value).split("\n")


def places(lines: list[str], *words: str) -> list[int]:
    """Where each is told, once."""
    found = [[at for at, line in enumerate(lines) if word in line] for word in words]
    assert [len(own) for own in found] == [1] * len(words), (lines, words)
    return [own[0] for own in found]


def broken_data(folder: Path) -> None:
    """Questions that are none, a seed without its seed.json, no tree."""
    (folder / "q.jsonl").write_text('{"question_id": "a"}\nno json\n', encoding="utf-8")
    shutil.copytree(DEMO, folder / "seed", ignore=shutil.ignore_patterns("trees", "*.jsonl"))
    (folder / "seed" / "seed.json").unlink()
    (folder / "trees").mkdir()


def test_everything_at_once_and_in_order(tmp_path: Path) -> None:
    """Keys, values, files that are not there, questions, seed: none hides another."""
    broken_data(tmp_path)
    lines = refused(
        tmp_path,
        "run: {nam: my}\ndata: {questions: q.jsonl, seed: seed, trees: nowhere, batch_size: many}\n"
        "trainer: {epochs: -1}\n",
        "llm.concurency=3",
    )
    assert "mend them from the top" in lines[0]
    told = places(
        lines,
        "did you mean 'run.name'",
        "did you mean 'llm.concurrency'",
        "data.batch_size: expected",
        "trainer.epochs: expected",
        "data.trees: nowhere: no such file",
        "line 1 (a): video_id is missing",
        "line 2: not JSON",
        "seed.json: cannot be read",
    )
    assert told == sorted(told)


def test_what_stands_in_the_files(tmp_path: Path) -> None:
    """A configuration that is fine: a key that is not set, then the files."""
    broken_data(tmp_path)
    shutil.copy(DEMO / "questions.jsonl", tmp_path / "whole.jsonl")
    lines = refused(
        tmp_path,
        "data: {questions: whole.jsonl, seed: seed, trees: trees}\n"
        "llm: {endpoints: [{name: e, base_url: 'http://h/v1', model: m, api_key_env: NOT_SET_X, "
        "roles: [search, judge, evolve]}]}\n",
    )
    told = places(lines, "NOT_SET_X", "seed.json: cannot be read", "120 videos have no tree")
    assert told == sorted(told)


def test_one_problem_is_told_as_it_is(tmp_path: Path) -> None:
    """No list of one; its kind is kept."""
    assert refused(tmp_path, "data: {trees: nowhere}\n")[0].startswith(
        "data.trees: nowhere: no such"
    )
    assert refused(tmp_path, "run: {nam: my}\n")[0].endswith("did you mean 'run.name'?")
    assert "not valid YAML" in refused(tmp_path, "run: {\n")[0]


def test_nothing_follows_from_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Without the list of what is left out the questions are others: no problem is made of that."""
    more = (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    further = msgspec.json.decode(more[0]) | {"question_id": "further-1"}
    more.append(msgspec.json.encode(further).decode())
    (tmp_path / "q.jsonl").write_text("\n".join(more) + "\n", encoding="utf-8")
    lines = refused(tmp_path, "data: {questions: q.jsonl, exclude: nowhere.txt}\n")
    assert "data.exclude: nowhere.txt: no such file" in "\n".join(lines)
    assert "dataset_fingerprint" not in "\n".join(lines)
    assert "dataset_fingerprint" in "\n".join(refused(tmp_path, "data: {questions: q.jsonl}\n"))
