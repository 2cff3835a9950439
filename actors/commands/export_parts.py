"""What is known of a package that is to be published: texts, history, gains. Reads only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from actors.baseline.seed_db import read_predictions
from actors.commands.blame_lines import blame_lines
from actors.commands.lineage import Hop, Lineage, changes_of, lineage
from actors.commands.seed_options import OptionError
from actors.commands.workspace_view import RUN_DB, Kind, texts_of, workspace_ledger
from actors.config import agent_of, load_config, resolve_path
from actors.dataset.questions import load_dataset
from actors.evolver.leak import Exposed
from actors.factorial_view import FactorialView, factorial_view
from actors.ledger.reader import Reader
from actors.trainer.score import McNemar, mcnemar
from actors.workspace.files import read_json
from actors.workspace.manifest import read_manifest
from actors.workspace.seed import BASELINE, POOLS, SEED
from prompts.trajectory import EmptyTrajectory, read_steps, submission_of
from protocol.documents import Package
from protocol.factorial_rows import PROMPTS
from protocol.keys import slow_key
from protocol.ledger import Where
from protocol.rows import DecisionRow, EpochRow, EvaluationRow, OutcomeRow, StepRow, TraceRow
from protocol.seed import Pools, SeedInfo
from protocol.settings import Config
from protocol.workspace import Manifest

__all__ = ["Gain", "Held", "Published", "gather", "package_of"]

_PACKAGE = re.compile(r"(v[1-9][0-9]*)/(?:prompts/)?[pv]([1-9][0-9]*)")


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """A pool under the seed package and under this one. *_right and *_missing: of planned."""

    pool: str
    planned: int
    seed_right: int
    seed_missing: int
    right: int
    missing: int
    paired: McNemar


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A document with its history. lines: by edit key, how many lines of it are left."""

    history: Lineage
    lines: dict[str, int]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the export is made of. best: as which the manifest knows the package.

    epochs: those that are whole. exposed: the questions that the texts are held against.
    together: of a run under the factorial gate. alphas: of the ladder's decisions.
    """

    manifest: Manifest
    config: Config
    seed: SeedInfo
    package: Package
    best: tuple[str, ...]
    documents: tuple[Held, ...]
    epochs: tuple[EpochRow, ...]
    gains: tuple[Gain, ...]
    exposed: tuple[Exposed, ...]
    together: FactorialView | None = None
    alphas: tuple[float, ...] = ()


def package_of(manifest: Manifest, given: str) -> Package:
    """``best_hard``, ``best_mixed`` or ``vN/pM``. Raises OptionError."""
    if given in ("best_hard", "best_mixed"):
        package: Package = getattr(manifest, given)
        return package
    found = _PACKAGE.fullmatch(given)
    if found is None:
        raise OptionError(
            f"--package {given}: must be best_hard, best_mixed, or vN/pM such as v3/p1 for "
            "skills/v3 with prompts/v1"
        )
    return Package(skills=found[1], prompts=f"v{found[2]}")


def gather(workspace: Path, given: str) -> Published:
    """Read a workspace.

    Raises OptionError, ConfigError, DataError, WorkspaceError, UnknownText: what cannot be told
    for certain is not published.
    """
    manifest = read_manifest(workspace)
    package = package_of(manifest, given)
    config_path = workspace / "config.yaml"
    config = load_config(config_path)
    questions = load_dataset(resolve_path(config.data.questions, config_path), None).questions
    versions: tuple[tuple[Kind, str], ...] = (
        ("skills", package.skills),
        ("prompts", package.prompts),
    )
    names = [(*one, name) for one in versions for name in texts_of(workspace, *one)]
    seed = read_json(workspace / SEED, SeedInfo, "restore it from the seed")
    if not (workspace / RUN_DB).is_file():
        histories = [lineage(workspace, None, *place) for place in names]
        epochs: Sequence[EpochRow] = ()
        gains: tuple[Gain, ...] = ()
        read: Mapping[str, tuple[str, ...]] = {}
        together = None
        alphas: tuple[float, ...] = ()
    else:
        with workspace_ledger(workspace) as reader:
            histories = [lineage(workspace, reader, *place) for place in names]
            epochs = reader.rows(EpochRow)
            together = factorial_view(reader)
            alphas = tuple(row.alpha for row in reader.rows(DecisionRow))
            serves = seed.agent == agent_of(config)
            gains = _gains(workspace, reader, package, seed_serves=serves)
            read = _read_by_editor(reader, [hop for held in histories for hop in held.hops])
    best = tuple(key for key in ("best_hard", "best_mixed") if getattr(manifest, key) == package)
    return Published(
        manifest=manifest,
        config=config,
        seed=seed,
        package=package,
        best=best,
        documents=tuple(_held(history) for history in histories),
        epochs=tuple(epochs),
        gains=gains,
        exposed=tuple(Exposed(q, read.get(q.question_id, ())) for q in questions),
        together=together,
        alphas=alphas,
    )


def _held(history: Lineage) -> Held:
    lines: dict[str, int] = {}
    for key in blame_lines(history.seed, changes_of(history)):
        if key is not None:
            lines[key] = lines.get(key, 0) + 1
    return Held(history=history, lines=lines)


def _gains(
    workspace: Path, reader: Reader, package: Package, *, seed_serves: bool
) -> tuple[Gain, ...]:
    """On val and on test, where both packages were evaluated; the seed's own gains nothing.

    seed_serves: the seed's predictions are this agent's own, so that they stand for its package on
    test where it was not evaluated.
    """
    rows = reader.rows(EvaluationRow)
    found = []
    for pool in ("val", "test"):
        own = [row for row in rows if row.pool == pool and row.package == package]
        seeded = [row for row in rows if row.pool == pool and (row.epoch, row.kind) == (0, "seed")]
        # the first pass of a package is its own; later rows may point at it
        after = min(own, key=lambda row: (row.epoch, row.run_key), default=None)
        if after is None or any(row.package == package for row in seeded):
            continue
        if seeded:
            outcomes = _outcomes(workspace, reader, seeded[0])
        elif pool == "test" and seed_serves:
            outcomes = _predictions(workspace)
        else:
            continue
        found.append(
            Gain(
                pool=pool,
                planned=after.planned,
                seed_right=sum(outcomes.values()),
                seed_missing=after.planned - len(outcomes),
                right=after.right,
                missing=after.missing,
                paired=mcnemar(outcomes, _outcomes(workspace, reader, after)),
            )
        )
    return tuple(found)


def _outcomes(workspace: Path, reader: Reader, row: EvaluationRow) -> dict[str, bool]:
    """The pass behind a row as question id -> right; missing questions are left out.

    The seed's row on test may stand for its predictions, which are no pass of this run.
    """
    rows = reader.rows(OutcomeRow, Where(column="run_key", value=row.outcomes_key))
    if not rows and row.pool == "test" and row.kind == "seed":
        return _predictions(workspace)
    return {one.question_id: one.outcome == "right" for one in rows if one.outcome != "missing"}


def _predictions(workspace: Path) -> dict[str, bool]:
    """The seed's predictions on test."""
    test = set(read_json(workspace / POOLS, Pools, "restore it from the seed").test)
    rows = read_predictions(workspace / BASELINE)
    return {row.question_id: row.right for row in rows if row.question_id in test}


def _read_by_editor(reader: Reader, hops: Sequence[Hop]) -> dict[str, tuple[str, ...]]:
    """By question id what was read in the passes that the edits were made from."""
    keys: set[str] = set()
    for hop in hops:
        if hop.step is not None:
            keys |= {f"{own}/rollout" for step in hop.passes for own in _draws_of(reader, step)}
            continue
        keys |= {f"{slow_key(hop.epoch)}/before", f"{slow_key(hop.epoch)}/after"}
        steps = reader.rows(StepRow, Where(column="epoch", value=hop.epoch))
        keys |= {f"{row.run_key}/rollout" for row in steps}
    read: dict[str, dict[str, None]] = {}
    for key in sorted(keys):
        by_question: dict[str, list[TraceRow]] = {}
        for row in reader.rows(TraceRow, Where(column="run_key", value=key)):
            by_question.setdefault(row.question_id, []).append(row)
        for question_id, rows in by_question.items():
            read.setdefault(question_id, {}).update(dict.fromkeys(_texts(rows)))
    return {question_id: tuple(texts) for question_id, texts in read.items()}


def _draws_of(reader: Reader, step: str) -> list[str]:
    """The steps whose rollouts a step's editor read: its own; of all classes where the factorial
    gate's prompts were edited."""
    epoch, scope = step.split("/")[:2]
    if scope != PROMPTS:
        return [step]
    rows = reader.rows(StepRow, Where(column="epoch", value=int(epoch.removeprefix("e"))))
    return [row.run_key for row in rows if row.step == 1 and row.task_type != PROMPTS]


def _texts(rows: Sequence[TraceRow]) -> list[str]:
    """The observations, and the evidence that was handed in."""
    try:
        steps = read_steps(rows)
    except EmptyTrajectory:
        return []
    submission = submission_of(steps)
    texts = [step.observation for step in steps if step.observation]
    return texts if submission is None else [*texts, submission.evidence]
