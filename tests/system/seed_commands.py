"""``bin/trm``'s commands about seeds, in this process and in one of their own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from actors.config import ROOT
from actors.ledger.reader import open_reader
from actors.main import main
from protocol.rows import AttemptRow
from tests.system.runs import Running

__all__ = [
    "DEMO",
    "SMALL",
    "Trm",
    "Words",
    "answered",
    "asked",
    "files_of",
    "fingerprints",
    "leave_out",
    "scratch",
    "trm_running",
]

Words = list[str | Path]

DEMO = ROOT / "seeds" / "demo"
SMALL = ("--n-trainval", "24", "--n-test", "12", "--val-wrong-min", "8")
"""A split of the demo's first videos."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Trm:
    """Runs ``bin/trm`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path, expect: int = 0) -> Done:
        """Run a command and hold its exit code to what is expected."""
        self._capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:  # argparse
            code = ended.code if isinstance(ended.code, int) else 1
        out, err = self._capsys.readouterr()
        assert code == expect, f"exit {code}\n{out}\n{err}"
        return Done(code, out, err)

    def json(self, *arguments: str | Path, expect: int = 0) -> dict[str, object]:
        """The object that ``--json`` prints."""
        told: dict[str, object] = json.loads(self(*arguments, "--json", expect=expect).out)
        return told


@contextmanager
def trm_running(*arguments: str | Path) -> Iterator[Running]:
    """A command in a process of its own; whatever the test does, none is left behind."""
    own = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    process = subprocess.Popen(
        [sys.executable, "-m", "actors.main", *map(str, arguments)],
        env=own | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.kill()


def leave_out(path: Path, n_videos: int) -> Path:
    """An exclusion list that leaves the demo's first videos."""
    lines = (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["question_id"] for line in lines]
    out = [name for name in ids if int(name.split("-")[1]) > n_videos]
    path.write_text("\n".join(out), encoding="utf-8")
    return path


def fingerprints(*paths: Path) -> dict[Path, tuple[str, int]]:
    """SHA-256 and time of change of files."""
    return {
        path: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in paths
    }


def scratch(out: Path, small: Path) -> Words:
    """The command that makes a seed of the demo's first videos."""
    return [
        *("seed", out, "--name", "small", "--from-scratch", DEMO.parents[1] / "config/demo.yaml"),
        *("--set", f"data.exclude={small / 'exclude.txt'}", "--set", "runtime.drain_s=5"),
        *("--skills", DEMO / "skills/v1", "--prompts", DEMO / "prompts/v1", *SMALL),
    ]


def asked(small: Path) -> Words:
    """The questions of ``small``."""
    return ["--questions", DEMO / "questions.jsonl", "--exclude", small / "exclude.txt"]


def files_of(seed: Path) -> dict[str, bytes]:
    """Every file of a seed."""
    return {
        path.relative_to(seed).as_posix(): path.read_bytes()
        for path in sorted(seed.rglob("*"))
        if path.is_file()
    }


def answered(work: Path) -> Counter[str]:
    """How often an endpoint gave a whole answer to each chat; replays are not among them."""
    with open_reader(work / "run.db") as reader:
        return Counter(row.call for row in reader.rows(AttemptRow) if row.outcome == "ok")
