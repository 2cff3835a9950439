"""Reads a workspace into a ``Story``. Reads only; what cannot be read is told as a gap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from actors.baseline.seed_db import read_predictions
from actors.commands.html.gaps import Gaps
from actors.commands.html.gather_edits import candidates_of, documents_of, slow_updates_of
from actors.commands.html.gather_factorial import factorial_of
from actors.commands.html.gather_run import attempts_of, cost_of, diagnosed_of, run_of, trouble_of
from actors.commands.html.story import ClassGain, Comparison, Point, Questioned, Story
from actors.commands.workspace_view import RUN_DB, workspace_ledger
from actors.config import load_config, resolve_path
from actors.dataset.questions import load_dataset
from actors.ledger.reader import Reader
from actors.trainer.holdout import SEED_OUTCOMES
from actors.trainer.score import mcnemar, wilson
from actors.workspace.files import read_json
from actors.workspace.manifest import read_manifest
from actors.workspace.seed import BASELINE, POOLS, SEED
from protocol.dataset import Question
from protocol.documents import Package
from protocol.rows import DiagnosisRow, EpochRow, EvaluationRow, OutcomeRow
from protocol.seed import BaselinePrediction, Pools, SeedInfo
from protocol.settings import Config

__all__ = ["CONFIG", "compare", "gather", "ledger_of", "point_of"]

CONFIG = "config.yaml"
Predictions = Mapping[str, BaselinePrediction]


@contextmanager
def ledger_of(workspace: Path) -> Iterator[Reader | None]:
    """The ledger; None where no run has begun on the workspace, so that it has none."""
    if not (workspace / RUN_DB).exists():
        yield None
        return
    with workspace_ledger(workspace) as reader:
        yield reader


def gather(workspace: Path, reader: Reader | None) -> Story:
    """Read everything but the transcripts.

    Raises WorkspaceError and ConfigError if manifest or config.yaml cannot be read, and
    sqlite3.Error for a damaged ledger.
    """
    gaps = Gaps()
    manifest = read_manifest(workspace)
    source = workspace / CONFIG
    config = load_config(source)
    info = read_json(workspace / SEED, SeedInfo, "restore it from the seed")
    no_texts: Mapping[str, Question] = {}
    no_answers: Predictions = {}
    no_pools = Pools(diag=(), val=(), test=())
    questions = gaps.try_to("the questions' texts", lambda: _questions(config, source), no_texts)
    pools = gaps.try_to(
        "the pools", lambda: read_json(workspace / POOLS, Pools, "restore it"), no_pools
    )
    predictions = gaps.try_to("the seed's answers", lambda: _predictions(workspace), no_answers)
    rows = [] if reader is None else reader.rows(EvaluationRow)
    outcomes = [] if reader is None else reader.rows(OutcomeRow)
    diagnoses = [] if reader is None else reader.rows(DiagnosisRow)
    attempts = attempts_of(reader)
    run = run_of(workspace, reader, manifest, config, info, attempts)
    asked = _questioned(questions, pools, predictions, outcomes)
    texts = tuple(questions.values())
    return Story(
        run=run,
        points=tuple(map(point_of, rows)),
        epochs=() if reader is None else tuple(reader.rows(EpochRow)),
        comparisons=_comparisons(rows, run.seed, run.best, outcomes, predictions, pools),
        candidates=candidates_of(reader, config, source, texts, workspace, gaps),
        slow=slow_updates_of(workspace, reader, gaps),
        documents=documents_of(workspace, reader, run.best, gaps),
        diagnosed=diagnosed_of(diagnoses),
        cost=cost_of(attempts),
        trouble=trouble_of(reader, outcomes),
        questions=asked,
        findings={(row.run_key, row.question_id): _finding(row) for row in diagnoses},
        factorial=factorial_of(reader, config, source, texts, workspace, gaps),
        gaps=tuple(gaps.told),
    )


def point_of(row: EvaluationRow) -> Point:
    """An evaluation with its interval."""
    low, high = wilson(row.right, row.planned)
    return Point(
        epoch=row.epoch,
        pool=row.pool,
        kind=row.kind,
        package=f"{row.skills_version}/{row.prompts_version}",
        planned=row.planned,
        right=row.right,
        missing=row.missing,
        low=low,
        high=high,
        outcomes_key=row.outcomes_key,
    )


def _questions(config: Config, source: Path) -> Mapping[str, Question]:
    exclude = config.data.exclude
    loaded = load_dataset(
        resolve_path(config.data.questions, source),
        None if exclude is None else resolve_path(exclude, source),
        duration=config.data.duration,
    )
    return {question.question_id: question for question in loaded.questions}


def _predictions(workspace: Path) -> Predictions:
    return {row.question_id: row for row in read_predictions(workspace / BASELINE)}


def _finding(row: DiagnosisRow) -> str:
    parts = [row.error_type.replace("_", " ")]
    if row.subtype:
        parts.append(row.subtype.replace("_", " "))
    parts.append("the judge failed" if row.cause is None else row.cause)
    if row.degraded:
        parts.append("degraded")
    rule = f"\nRule: {row.rule}" if row.rule else ""
    return f"{', '.join(parts)}. {row.finding}{rule}"


# -- questions --------------------------------------------------------------------------


def _questioned(
    questions: Mapping[str, Question],
    pools: Pools,
    predictions: Predictions,
    outcomes: Sequence[OutcomeRow],
) -> tuple[Questioned, ...]:
    """Every question of a pool, and every one that was answered; test first."""
    by_question: defaultdict[str, list[OutcomeRow]] = defaultdict(list)
    for row in outcomes:
        by_question[row.question_id].append(row)
    placed = {
        question_id: pool
        for pool, ids in (("diag", pools.diag), ("val", pools.val), ("test", pools.test))
        for question_id in ids
    }
    ids = placed.keys() | by_question.keys()
    order = {"test": 0, "val": 1, "diag": 2, "": 3}
    made = [
        _one(questions.get(name), name, placed.get(name, ""), predictions, by_question[name])
        for name in ids
    ]
    return tuple(sorted(made, key=lambda q: (order[q.pool], q.task_type, q.question_id)))


def _one(
    question: Question | None,
    question_id: str,
    pool: str,
    predictions: Predictions,
    outcomes: Sequence[OutcomeRow],
) -> Questioned:
    seeded = predictions.get(question_id)
    row = outcomes[0] if outcomes else None
    known = question or row or seeded
    return Questioned(
        question_id=question_id,
        video_id=known.video_id if known else "",
        task_type=known.task_type if known else "",
        pool=pool,
        known=question is not None,
        text=question.question if question else "",
        options=question.options if question else (),
        gold=question.answer if question else "",
        seed=None if seeded is None else (seeded.letter or "", seeded.right),
        outcomes=tuple(outcomes),
    )


# -- the best package against the seed's ------------------------------------------------


def _comparisons(
    rows: Sequence[EvaluationRow],
    seed: Package,
    best: Package,
    outcomes: Sequence[OutcomeRow],
    predictions: Predictions,
    pools: Pools,
) -> tuple[Comparison, ...]:
    """On test and on val, where both packages were evaluated; test first."""
    classes = {row.question_id: row.task_type for row in outcomes}
    classes |= {row.question_id: row.task_type for row in predictions.values()}
    answered: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for row in outcomes:
        if row.outcome != "missing":
            answered[row.run_key][row.question_id] = row.outcome == "right"
    answered[SEED_OUTCOMES] = {
        name: predictions[name].right for name in pools.test if name in predictions
    }
    found = []
    for pool in ("test", "val"):
        sides = [_pass_of(rows, pool, package) for package in (seed, best)]
        if seed == best or sides[0] is None or sides[1] is None:
            continue
        before, after = sides[0], sides[1]
        found.append(
            compare(
                point_of(before),
                point_of(after),
                answered[before.outcomes_key],
                answered[after.outcomes_key],
                {name: classes.get(name, "") for name in _planned(outcomes, after, pools, pool)},
            )
        )
    return tuple(found)


def _planned(
    outcomes: Sequence[OutcomeRow], row: EvaluationRow, pools: Pools, pool: str
) -> list[str]:
    """The questions of a pass: of test the whole pool, for the seed's may be no pass of the run."""
    ids = [one.question_id for one in outcomes if one.run_key == row.outcomes_key]
    return ids or list(pools.test if pool == "test" else ())


def _pass_of(rows: Sequence[EvaluationRow], pool: str, package: Package) -> EvaluationRow | None:
    """A package's first pass on a pool that counts for the choice of the best."""
    own = [
        row
        for row in rows
        if row.pool == pool
        and (row.skills_version, row.prompts_version) == (package.skills, package.prompts)
        and (pool == "test" or row.kind in ("seed", "final"))
    ]
    return min(own, key=lambda row: (row.epoch, row.kind != "final", row.run_key), default=None)


def compare(
    before: Point,
    after: Point,
    was: Mapping[str, bool],
    is_: Mapping[str, bool],
    classes: Mapping[str, str],
) -> Comparison:
    """A pool under two packages, as a whole and by class.

    was, is_: question id -> right; missing ones are left out. classes: of every planned question.
    """
    by_class: defaultdict[str, list[str]] = defaultdict(list)
    for question_id, name in classes.items():
        by_class[name].append(question_id)
    gains = [
        ClassGain(
            task_type=name,
            planned=len(ids),
            before=sum(was.get(one, False) for one in ids),
            after=sum(is_.get(one, False) for one in ids),
            paired=mcnemar(
                {one: was[one] for one in ids if one in was},
                {one: is_[one] for one in ids if one in is_},
            ),
        )
        for name, ids in sorted(by_class.items())
    ]
    return Comparison(
        pool=after.pool,
        before=before,
        after=after,
        paired=mcnemar(was, is_),
        classes=tuple(gains),
        won=tuple(sorted(one for one in was.keys() & is_.keys() if is_[one] and not was[one])),
        lost=tuple(sorted(one for one in was.keys() & is_.keys() if was[one] and not is_[one])),
    )
