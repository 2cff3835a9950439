"""A baseline out of a database of answers: the older program's, a run's, or a seed's (row seed).

The letter is read with the project's own extractor and held against the gold of our questions.
An answer that infrastructure lost is never taken for a wrong one: it is named, and somebody has
to decide. Everything is read from a file at rest, and nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from actors.baseline.seed_db import (
    SeedBaselineError,
    read_diagnoses,
    read_predictions,
    read_run_id,
)
from actors.commands.seed_options import named_ids
from actors.dataset.fingerprint import question_fingerprint
from actors.dataset.questions import Dataset
from actors.ledger.reader import open_reader
from actors.rollout.answer import Letter, extract
from actors.workspace.baseline_db import refuse_unsettled
from actors.workspace.errors import RowsError, SeedError
from actors.workspace.harness_db import (
    HarnessRow,
    Kind,
    kind_of,
    read_harness_rows,
    run_counts,
)
from protocol.dataset import Question
from protocol.ledger import Where
from protocol.rows import DiagnosisRow, OutcomeRow
from protocol.seed import BaselineDiagnosis, BaselinePrediction

__all__ = ["Extracted", "Lost", "choose_run", "extract_baseline", "standing_rows"]

_UNKNOWN_CONFIDENCE = 0.5  # the older program stored none
_OWN_END = frozenset({"finished", "budget_exceeded", "parse_error"})
_NO_STOP = "no letter, and no stop_reason that would tell an outage from no answer"


class Lost(msgspec.Struct, frozen=True):
    """A question without an outcome, and why."""

    question_id: str
    why: str

    def __str__(self) -> str:
        return f"{self.question_id}: {self.why}"


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline, and what was done to get it.

    run_id: the run in the source. predictions: ordered by question id.
    dropped: one line per row that another row of its question stands for.
    without: questions that have no outcome, which was accepted by name.
    unknown: ids that no question has. differing: rows whose class or video is named otherwise
    there; ours are used. skills: the hashes of the skill texts that the answers were made
    under, by class; empty if the source does not say.
    """

    kind: Kind
    run_id: str
    predictions: tuple[BaselinePrediction, ...]
    diagnoses: tuple[BaselineDiagnosis, ...]
    dropped: tuple[str, ...]
    without: tuple[Lost, ...]
    unknown: tuple[str, ...]
    differing: tuple[str, ...]
    skills: Mapping[str, frozenset[str]]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One row in a common form. wrong_gold: what it says otherwise than our questions."""

    question_id: str
    place: str
    letter: str | None
    confidence: float
    lost: str | None
    wrong_gold: str | None
    differing: str | None


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """What a source holds."""

    run_id: str
    answers: tuple[_Answer, ...]
    unknown: tuple[str, ...]
    diagnoses: tuple[BaselineDiagnosis, ...] = ()
    skills: Mapping[str, frozenset[str]] = {}


def extract_baseline(
    path: Path,
    run_id: str | None,
    dataset: Dataset,
    *,
    dedupe: bool = False,
    without: Collection[str] = (),
) -> Extracted:
    """The baseline that the run ``run_id`` in ``path`` is.

    run_id: None if the file holds one run only. dedupe: of several rows of a question the first
    that has an outcome stands. without: questions that may lack an outcome, each of them.

    Raises SeedError for a file that cannot be used, RowsError (with every row at fault) for
    repeated questions, another gold answer, and missing outcomes that nobody decided on.
    """
    by_id = {question.question_id: question for question in dataset.questions}
    kind = kind_of(path)
    read = _READERS[kind](path, run_id, by_id)
    _refuse_other_gold(path, read.answers)
    chosen, dropped = _one_each(path, read.answers, dedupe)
    lost = [
        Lost(question_id, why)
        for question_id in sorted(by_id)
        if (why := _why_lost(chosen.get(question_id), read.run_id)) is not None
    ]
    _refuse_undecided(path, lost, without)
    kept = [chosen[question_id] for question_id in sorted(by_id) if question_id in chosen]
    return Extracted(
        kind=kind,
        run_id=read.run_id,
        predictions=tuple(
            _prediction(answer, by_id[answer.question_id]) for answer in kept if answer.lost is None
        ),
        diagnoses=read.diagnoses,
        dropped=dropped,
        without=tuple(lost),
        unknown=tuple(sorted(set(read.unknown) - set(dataset.excluded))),
        differing=tuple(answer.differing for answer in kept if answer.differing is not None),
        skills=read.skills,
    )


def _prediction(answer: _Answer, question: Question) -> BaselinePrediction:
    return BaselinePrediction(
        question_id=question.question_id,
        video_id=question.video_id,
        task_type=question.task_type,
        letter=answer.letter,
        right=answer.letter == question.answer,
        confidence=answer.confidence,
    )


# -- what is refused --------------------------------------------------------------------


def _refuse_other_gold(path: Path, answers: Iterable[_Answer]) -> None:
    wrong = [answer.wrong_gold for answer in answers if answer.wrong_gold is not None]
    if wrong:
        raise RowsError(
            path,
            f"{len(wrong)} rows were scored with another gold answer than ours",
            "give the questions that the run answered; nothing is re-scored unasked:",
            wrong,
        )


def _one_each(
    path: Path, answers: Sequence[_Answer], dedupe: bool
) -> tuple[dict[str, _Answer], tuple[str, ...]]:
    """The row that stands for each question, and a line for every row that does not."""
    groups: defaultdict[str, list[_Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.question_id].append(answer)
    repeated = {name: rows for name, rows in groups.items() if len(rows) > 1}
    if repeated and not dedupe:
        raise RowsError(
            path,
            f"{len(answers)} rows for {len(groups)} questions",
            "keep the first row of each with --dedupe:",
            [f"{name}: {', '.join(row.place for row in rows)}" for name, rows in repeated.items()],
        )
    chosen: dict[str, _Answer] = {}
    dropped = []
    for question_id, rows in groups.items():
        first = next((row for row in rows if row.lost is None), rows[0])
        chosen[question_id] = first
        for row in rows:
            if row is not first:
                said = f"no outcome ({row.lost})" if row.lost else f"letter {row.letter or 'none'}"
                dropped.append(f"{question_id}: {row.place}, {said}; {first.place} stands")
    return chosen, tuple(dropped)


def _why_lost(answer: _Answer | None, run_id: str) -> str | None:
    return f"no row in {run_id}" if answer is None else answer.lost


def _refuse_undecided(path: Path, lost: Sequence[Lost], without: Collection[str]) -> None:
    """Missing is never wrong: somebody says by name which questions may be missing."""
    missing = {entry.question_id for entry in lost}
    answered = sorted(set(without) - missing)
    if answered:
        raise RowsError(
            path,
            f"--without names {len(answered)} questions that are not missing",
            "leave these out of it:",
            answered,
        )
    undecided = [entry for entry in lost if entry.question_id not in without]
    if undecided:
        names = named_ids(sorted(missing))
        raise RowsError(
            path,
            f"{len(undecided)} questions have no outcome; an outage is not a wrong answer",
            "answer them, or exclude them, or go on without their outcomes (only test questions "
            f"may lack one) with --without {names}",
            [str(entry) for entry in undecided],
        )


# -- the three sources ------------------------------------------------------------------


def standing_rows(
    path: Path, run_id: str, questions: Iterable[Question]
) -> dict[str, tuple[HarnessRow, str | None]]:
    """Of a harness.db the row that stands for each question, with the letter read out of it.

    It is the row that ``extract_baseline`` takes with ``dedupe``.
    """
    by_id = {question.question_id: question for question in questions}
    rows = [row for row in read_harness_rows(path, run_id) if row.question_id in by_id]
    by_place = {f"row {row.row}": row for row in rows}
    answers = [_harness_answer(row, by_id[row.question_id]) for row in rows]
    chosen, _ = _one_each(path, answers, dedupe=True)
    return {name: (by_place[answer.place], answer.letter) for name, answer in chosen.items()}


def choose_run(path: Path, wanted: str | None, table: str, key: str) -> str:
    """The run that was asked for, or the only one. Raises RowsError with those there are."""
    counts = run_counts(path, table, key)
    if wanted is None and len(counts) == 1:
        return next(iter(counts))
    if wanted in counts:
        return wanted
    what = "name one of its runs" if wanted is None else f"there is no run {wanted!r} in it"
    raise RowsError(
        path,
        what,
        "give --from-run one of:",
        [f"{name} ({count} rows)" for name, count in counts.items()],
    )


def _from_harness(path: Path, run_id: str | None, by_id: Mapping[str, Question]) -> _Read:
    run_id = choose_run(path, run_id, "predictions", "run_id")
    rows = read_harness_rows(path, run_id)
    return _Read(
        run_id=run_id,
        answers=tuple(
            _harness_answer(row, by_id[row.question_id]) for row in rows if row.question_id in by_id
        ),
        unknown=tuple(row.question_id for row in rows if row.question_id not in by_id),
    )


def _harness_answer(row: HarnessRow, question: Question) -> _Answer:
    reading = extract(row.prediction, question.options)
    letter = reading.letter if isinstance(reading, Letter) else None
    gold = "nothing" if row.answer is None else str(row.answer).strip()
    place = f"row {row.row}"
    return _Answer(
        question_id=row.question_id,
        place=place,
        letter=letter,
        confidence=_UNKNOWN_CONFIDENCE,
        lost=_harness_lost(row, letter),
        wrong_gold=None
        if gold == question.answer
        else f"{row.question_id}, {place}: gold is {gold!r}, ours {question.answer!r}",
        differing=_differing(row.question_id, row.video_id, row.task_type, question),
    )


def _harness_lost(row: HarnessRow, letter: str | None) -> str | None:
    """Why a row has no outcome. An agent that ran to its own end without a letter was wrong."""
    if row.stop_reason in _OWN_END:
        return None
    if row.stop_reason is not None:
        return f"stop_reason is {row.stop_reason!r}"
    return None if letter is not None else _NO_STOP


def _from_run(path: Path, run_id: str | None, by_id: Mapping[str, Question]) -> _Read:
    run_id = choose_run(path, run_id, OutcomeRow.TABLE, "run_key")
    refuse_unsettled(path)
    try:
        with open_reader(path, at_rest=True) as reader:
            where = Where(column="run_key", value=run_id)
            rows = reader.rows(OutcomeRow, where)
            judged = reader.rows(DiagnosisRow, where)
    except sqlite3.Error as error:
        raise SeedError(path, f"cannot be read: {error}", "give the run.db of a run") from error
    skills: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.question_id in by_id:
            skills[by_id[row.question_id].task_type].add(row.skill_hash)
    return _Read(
        run_id=run_id,
        answers=tuple(
            _run_answer(row, by_id[row.question_id]) for row in rows if row.question_id in by_id
        ),
        unknown=tuple(row.question_id for row in rows if row.question_id not in by_id),
        diagnoses=tuple(
            _diagnosis(row, by_id[row.question_id])
            for row in judged
            if row.question_id in by_id
            and row.cause is not None  # a judge that failed said nothing
        ),
        skills={task_type: frozenset(hashes) for task_type, hashes in skills.items()},
    )


def _run_answer(row: OutcomeRow, question: Question) -> _Answer:
    missing = row.outcome == "missing"
    return _Answer(
        question_id=row.question_id,
        place=f"outcome of {row.run_key}",
        letter=row.letter,
        confidence=row.confidence,
        lost=f"{row.missing_kind}: {row.detail}" if missing else None,
        wrong_gold=None
        if missing
        else _other_gold(row.question_id, row.letter, row.outcome == "right", question),
        differing=_differing(row.question_id, row.video_id, row.task_type, question),
    )


def _from_baseline(path: Path, run_id: str | None, by_id: Mapping[str, Question]) -> _Read:
    run_id = choose_run(path, run_id, "predictions", "run_id")
    try:
        read_run_id(path)  # raises unless it is the only one
        rows, diagnoses = read_predictions(path), read_diagnoses(path)
    except SeedBaselineError as error:
        raise SeedError(path, str(error), "give the baseline.db of a seed") from error
    return _Read(
        run_id=run_id,
        answers=tuple(
            _Answer(
                question_id=row.question_id,
                place=f"prediction of {run_id}",
                letter=row.letter,
                confidence=row.confidence,
                lost=None,
                wrong_gold=_other_gold(
                    row.question_id, row.letter, row.right, by_id[row.question_id]
                ),
                differing=_differing(
                    row.question_id, row.video_id, row.task_type, by_id[row.question_id]
                ),
            )
            for row in rows
            if row.question_id in by_id
        ),
        unknown=tuple(row.question_id for row in rows if row.question_id not in by_id),
        diagnoses=tuple(row for row in diagnoses if row.question_id in by_id),  # of ours only
    )


_READERS = {"harness": _from_harness, "run": _from_run, "baseline": _from_baseline}


def _other_gold(
    question_id: str, letter: str | None, right: bool, question: Question
) -> str | None:
    """Whether a stored score contradicts our gold answer, in words."""
    if (letter == question.answer) == right:
        return None
    said = "right" if right else "wrong"
    return f"{question_id}: letter {letter or 'none'} was {said}, our gold is {question.answer!r}"


def _differing(question_id: str, video_id: str, task_type: str, question: Question) -> str | None:
    pairs = (("video", video_id, question.video_id), ("class", task_type, question.task_type))
    found = [f"{key} {theirs!r}, ours {ours!r}" for key, theirs, ours in pairs if theirs != ours]
    return f"{question_id}: {'; '.join(found)}" if found else None


def _diagnosis(row: DiagnosisRow, question: Question) -> BaselineDiagnosis:
    return BaselineDiagnosis(
        fingerprint=question_fingerprint(question),
        question_id=row.question_id,
        error_type=row.error_type,
        cause=row.cause,
        degraded=row.degraded,
        finding=row.finding,
    )
