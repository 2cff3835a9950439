"""What a seed is, and whether what it says of itself is so: the parts of ``trm status``.

Reads only, and never raises: every check is made, whatever the others found.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from actors.baseline.seed_db import SeedBaselineError, read_diagnoses, read_predictions
from actors.config import ConfigError
from actors.dataset.errors import DataError
from actors.dataset.pools import load_frozen
from actors.dataset.questions import Dataset, load_dataset
from actors.dataset.tiers import tiered_outcomes
from actors.places import as_called
from actors.workspace.errors import WorkspaceError
from actors.workspace.files import read_json, sha256_hex
from actors.workspace.seed import BASELINE, POOLS, SEED, SPLIT_MANIFEST, seed_problems
from actors.workspace.versions import list_versions, read_prompts, read_skills
from protocol.seed import Pools, SeedInfo, SplitManifest

__all__ = [
    "Facts",
    "Looking",
    "Status",
    "Trouble",
    "look_at_questions",
    "look_at_seed",
    "look_at_unfinished",
]

_TROUBLE = (
    ConfigError,
    DataError,
    OSError,
    RecursionError,
    SeedBaselineError,
    TypeError,
    ValueError,
    WorkspaceError,
    sqlite3.Error,
)

T = TypeVar("T")
Facts = dict[str, object]


class Trouble(msgspec.Struct, frozen=True):
    """One thing that is not as it should be. where: file, or file and key."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.remedy}"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """kind: ``workspace``, ``seed``, ``seed under construction``, ``work folder`` or ``nothing``.

    facts: what is known, in the order in which it is shown; values are JSON.
    """

    path: str
    kind: str
    consistent: bool
    facts: Facts
    problems: tuple[Trouble, ...]


class Looking:
    """Facts and problems as they are found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: Facts = {}
        self.problems: list[Trouble] = []
        self.recoverable: list[Trouble] = []
        """Problems that ``--resume`` gets over by itself."""

    def add(self, where: str, what: str, remedy: str) -> None:
        """Note a problem once, however many checks come upon it."""
        if all((known.where, known.what) != (where, what) for known in self.problems):
            self.problems.append(Trouble(where, what, as_called(remedy)))

    def take(self, error: WorkspaceError) -> None:
        """Note what a room has found."""
        try:
            where = str(error.path.relative_to(self.folder))
        except ValueError:
            where = str(error.path)
        self.add(where, error.what, error.remedy)

    def try_to(self, where: str, remedy: str, look: Callable[[], T]) -> T | None:
        """What ``look`` finds; None after its trouble was noted."""
        try:
            return look()
        except WorkspaceError as error:
            self.take(error)
        except DataError as error:
            for problem in error.problems:
                self.add(problem.where, problem.what, problem.remedy)
        except _TROUBLE as error:
            self.add(where, str(error) or type(error).__name__, remedy)
        return None


def look_at_questions(
    looking: Looking, questions: Path | None, exclude: Path | None
) -> Dataset | None:
    own = looking.folder / "questions.jsonl"
    path = questions or (own if own.is_file() else None)
    if path is None:
        looking.facts["questions"] = "not given, so that the pools are held against none"
        return None
    remedy = "give the questions that were split"
    found = looking.try_to(str(path), remedy, lambda: load_dataset(path, exclude))
    if found is not None:
        looking.facts["questions"] = f"{len(found.questions)} of {path}"
    return found


def look_at_seed(looking: Looking, dataset: Dataset | None) -> None:
    """What seed.json and the files beside it say; every check of ``open_seed``."""
    folder = looking.folder
    for problem in seed_problems(folder):
        looking.take(problem)
    info = looking.try_to(SEED, "restore it", lambda: read_json(folder / SEED, SeedInfo, ""))
    if info is not None:
        looking.facts["name"] = info.name
        looking.facts["agent"] = info.agent
        looking.facts["subtitles"] = info.subtitles
        looking.facts["baseline_run_id"] = info.baseline_run_id
        looking.facts["dataset_fingerprint"] = info.dataset_fingerprint
        looking.facts["pools_sha256"] = info.pools_sha256
        looking.facts["tool_version"] = info.tool_version
    _split(looking)
    _baseline(looking, dataset)
    _versions(looking)
    if dataset is not None:
        looking.try_to(POOLS, "split anew", lambda: load_frozen(folder, dataset.questions))


def look_at_unfinished(looking: Looking, dataset: Dataset | None) -> None:
    """Which parts are there, and what comes next."""
    folder = looking.folder
    if (folder / BASELINE).exists():
        _baseline(looking, dataset)
    if (folder / POOLS).exists() or (folder / SPLIT_MANIFEST).exists():
        _split(looking)
    _versions(looking, sealed=False)
    steps = []
    if not (folder / BASELINE).exists():
        steps.append("bin/trm seed --baseline-only (or --from-scratch)")
    if not (folder / POOLS).exists():
        steps += ["bin/trm diagnose", "bin/trm split"]
    looking.facts["next"] = as_called(", ".join([*steps, "bin/trm seed"]))


def _split(looking: Looking) -> None:
    folder = looking.folder
    remedy = "make it anew with `bin/trm split`"
    manifest = looking.try_to(
        SPLIT_MANIFEST, remedy, lambda: read_json(folder / SPLIT_MANIFEST, SplitManifest, remedy)
    )
    if manifest is not None:
        looking.facts["split_parameters"] = msgspec.to_builtins(manifest.parameters)
        looking.facts["excluded"] = list(manifest.excluded)
    pools = looking.try_to(POOLS, remedy, lambda: read_json(folder / POOLS, Pools, remedy))
    if pools is not None:
        looking.facts["pools"] = {
            "diag": len(pools.diag),
            "val": len(pools.val),
            "test": len(pools.test),
        }


def _baseline(looking: Looking, dataset: Dataset | None) -> None:
    path = looking.folder / BASELINE
    remedy = "make it anew with `bin/trm seed`"
    data = looking.try_to(BASELINE, remedy, path.read_bytes)
    if data is not None:
        looking.facts["baseline_sha256"] = sha256_hex(data)
    rows = looking.try_to(BASELINE, remedy, lambda: (read_predictions(path), read_diagnoses(path)))
    if rows is None:
        return
    predictions, diagnoses = rows
    facts: Facts = {
        "answers": len(predictions),
        "right": sum(row.right for row in predictions),
        "diagnoses": len(diagnoses),
        "causes": dict(sorted(Counter(row.cause or "none" for row in diagnoses).items())),
        "degraded": sum(row.degraded for row in diagnoses),
    }
    if dataset is not None:
        tiered = looking.try_to(
            BASELINE,
            "diagnose anew",
            lambda: tiered_outcomes(dataset.questions, predictions, diagnoses),
        )
        if tiered is not None:
            facts["undiagnosed"] = len(tiered.undiagnosed)
            facts["stray_diagnoses"] = len(tiered.stray_diagnoses)
    looking.facts["baseline"] = facts


def _versions(looking: Looking, *, sealed: bool = True) -> None:
    """Every version, held against its meta.json; of a seed that is not finished only what lies."""
    for kind, read in (("skills", read_skills), ("prompts", read_prompts)):
        folder = looking.folder / kind
        names = list_versions(folder)
        looking.facts[kind] = ", ".join(names) or "none"
        for name in names:
            if not sealed and not (folder / name / "meta.json").exists():
                continue
            try:
                read(folder, name)
            except WorkspaceError as problem:
                looking.take(problem)
