"""The files of ``trm diagnose``: which baseline, which trajectories, where the verdicts go."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from actors.baseline.seed_db import (
    SeedBaselineError,
    read_diagnoses,
    read_predictions,
    read_run_id,
)
from actors.commands.diagnosing import Case, read_traces
from actors.commands.seed_options import Inputs, OptionError, work_folder
from actors.commands.seed_parts import read_skill_files
from actors.workspace.atomic import write_atomic
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.errors import RowsError
from protocol.documents import Skill
from protocol.seed import BaselineDiagnosis, BaselinePrediction

__all__ = [
    "Places",
    "Rows",
    "cases_of",
    "end_round",
    "places_of",
    "read_rows",
    "rounds",
    "store",
    "traces_of",
]

_ROUNDS = "retry_rounds"


@dataclass(frozen=True)
class Places:
    """source: only read if ``out`` is another file. out: gets the verdicts."""

    source: Path
    out: Path
    folder: Path
    work: Path


@dataclass(frozen=True)
class Rows:
    """The baseline, with the diagnoses that the file to be written holds already."""

    run_id: str
    predictions: Sequence[BaselinePrediction]
    diagnoses: Sequence[BaselineDiagnosis]


def places_of(arguments: argparse.Namespace) -> Places:
    """Raises OptionError; a finished seed's baseline is refused as a place to write (P2-2)."""
    target: Path = arguments.target
    source = target / "baseline.db" if target.is_dir() else target
    if not source.is_file():
        raise OptionError(
            f"{source}: there is no such baseline; make it with `bin/trm seed ... --baseline-only`"
        )
    source = source.resolve()
    out: Path = source if arguments.out is None else arguments.out.resolve()
    for name in ("seed.json", "manifest.json"):
        if out.name == "baseline.db" and (out.parent / name).exists():
            raise OptionError(
                f"{out}: belongs to a finished {'seed' if name == 'seed.json' else 'workspace'}, "
                "whose baseline is never written; give --out FILE, then make a new seed of that "
                "file with `bin/trm seed --from-db FILE`"
            )
    if not out.parent.is_dir():
        raise OptionError(f"--out {out}: its folder is not there")
    beside = source.parent if arguments.out is None else out
    return Places(
        source=source,
        out=out,
        folder=source.parent,
        work=work_folder(arguments.work, beside),
    )


def read_rows(places: Places) -> Rows:
    """The baseline as it is. Raises OptionError if it cannot be used, or ``out`` is of another."""
    try:
        rows = Rows(
            read_run_id(places.source),
            read_predictions(places.source),
            read_diagnoses(places.source),
        )
        if places.out == places.source or not places.out.exists():
            return rows
        if read_predictions(places.out) != rows.predictions:
            raise OptionError(f"--out {places.out}: holds another baseline; name a new file")
        known = {row.fingerprint: row for row in rows.diagnoses}
        known |= {row.fingerprint: row for row in read_diagnoses(places.out)}
        return Rows(rows.run_id, rows.predictions, tuple(known.values()))
    except SeedBaselineError as error:
        raise OptionError(str(error)) from error


def traces_of(arguments: argparse.Namespace, places: Places) -> Path:
    """Where the steps of the answers are."""
    return arguments.traces or places.work / "run.db"


def cases_of(
    arguments: argparse.Namespace,
    places: Places,
    inputs: Inputs,
    rows: Rows,
    wanted: Sequence[str],
    again: frozenset[str],
) -> tuple[list[Case], tuple[str, ...]]:
    """Everything to ask, and the answers that were left out for want of steps.

    An answered question without a trajectory is an error, not an input (row P0-2).
    """

    traces_path = traces_of(arguments, places)
    if not traces_path.exists():
        raise OptionError(
            "where are the steps of the answers? Give --traces FILE: the harness.db or run.db "
            "that the baseline was made from"
        )
    if traces_path.resolve() == (places.work / "run.db").resolve():
        _settle(traces_path)
    by_id = {question.question_id: question for question in inputs.dataset.questions}
    letters = {row.question_id: row.letter for row in rows.predictions}
    skills = _skills(arguments, places, [by_id[name].task_type for name in wanted])
    traces = read_traces(
        traces_path,
        arguments.traces_run or rows.run_id,
        [by_id[name] for name in wanted],
        letters,
        named=arguments.traces_run is not None,
    )
    lacking = tuple(line for _, line in sorted(traces.lacking.items()))
    if lacking and not arguments.allow_untraced:
        raise RowsError(
            traces_path,
            f"{len(lacking)} wrong answers have no trajectory, so that nothing can be judged",
            "name the right file and run, or leave them out with --allow-untraced:",
            lacking,
        )
    cases = [
        Case(
            question=by_id[name],
            letter=letters[name],
            skill=skills[by_id[name].task_type],
            traces=traces.rows[name],
            again=name in again,
        )
        for name in wanted
        if name in traces.rows
    ]
    return cases, lacking


def _settle(path: Path) -> None:
    """Our own run.db, whose lock we hold: what a killed run left in its log goes into it."""
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise OptionError(f"{path}: cannot be read: {error}") from error


def _skills(
    arguments: argparse.Namespace, places: Places, classes: Iterable[str]
) -> dict[str, Skill]:
    """The skill of each class, which the judge holds the answers against.

    Raises OptionError naming the classes without one, VersionError.
    """

    folder: Path = arguments.skills or places.folder / "skills" / "v1"
    if not folder.is_dir():
        raise OptionError(
            f"{folder}: there are no skills; name those that the answers were made under with "
            "--skills DIR"
        )
    by_type = {skill.task_type: skill for skill in read_skill_files(folder)}
    names = sorted(set(classes))
    bare = [name for name in names if name not in by_type and "_default" not in by_type]
    if bare:
        raise OptionError(f"{folder}: no skill for {', '.join(bare)}, and no _default.md")
    return {name: by_type[name if name in by_type else "_default"] for name in names}


def store(
    places: Places, rows: Rows, found: Sequence[BaselineDiagnosis]
) -> Sequence[BaselineDiagnosis]:
    """Write what was found beside what was there, one row per fingerprint; returns all rows.

    In one batch, atomically: the file is the old one or the new one, whole.
    """

    known = {row.fingerprint: row for row in rows.diagnoses}
    merged = known | {row.fingerprint: row for row in found}
    ordered = sorted(merged.values(), key=lambda row: (row.question_id, row.fingerprint))
    if merged != known or not places.out.exists():
        make_baseline_db(places.out, rows.run_id, rows.predictions, ordered)
    return ordered


def rounds(work: Path) -> int:
    """How many times doubtful verdicts were asked for again, to the end."""
    path = work / _ROUNDS
    text = path.read_text(encoding="ascii").strip() if path.exists() else "0"
    return int(text) if text.isdigit() else 0


def end_round(work: Path) -> None:
    """The next round asks with another salt; one that was stopped goes on with its own."""

    write_atomic(work / _ROUNDS, f"{rounds(work) + 1}\n".encode("ascii"))
