"""The run's candidates, slow updates and trained documents, with where they come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path as File

import msgspec

from actors.commands.blame_lines import blame_lines, lines_of
from actors.commands.diff_text import Line, compare_texts
from actors.commands.html.gaps import Gaps
from actors.commands.html.story import Candidate, Path, Provenance, SlowUpdate, Told
from actors.commands.lineage import UnknownText, changes_of, lineage
from actors.commands.workspace_view import Kind, texts_of
from actors.config import resolve_path
from actors.gate.looks import accept_looks
from actors.ledger.reader import Reader
from actors.system import simulated_roles
from actors.twin.truth import class_accuracy, classify, prompts_text
from actors.twin.world import World, load_world
from actors.workspace.errors import WorkspaceError
from actors.workspace.files import read_json
from actors.workspace.seed import SEED
from actors.workspace.versions import read_meta, read_prompts
from protocol.dataset import Question
from protocol.documents import Package
from protocol.gate import Look, Stage
from protocol.keys import slow_key
from protocol.rows import DecisionRow, DocumentRow, EditRow, EpochRow, SlowRow, StepRow
from protocol.seed import SeedInfo
from protocol.settings import Config

__all__ = ["candidates_of", "documents_of", "paths_of", "slow_updates_of"]

_CONTEXT = 2
Diffs = tuple[tuple[str, tuple[Line, ...]], ...]
_LOOKS = msgspec.json.Decoder(tuple[Look, ...])
_STAGES = msgspec.json.Decoder(tuple[Stage, ...])


def candidates_of(
    reader: Reader | None,
    config: Config,
    source: File,
    questions: Sequence[Question],
    workspace: File,
    gaps: Gaps,
) -> tuple[Candidate, ...]:
    """Every step, and every decision of a step that is not whole yet, in order."""
    if reader is None:
        return ()
    steps = {row.run_key: row for row in reader.rows(StepRow)}
    decisions = {row.run_key: row for row in reader.rows(DecisionRow)}
    texts = {row.hash: row.text for row in reader.rows(DocumentRow)}
    edits: defaultdict[str, list[EditRow]] = defaultdict(list)
    for row in reader.rows(EditRow):
        edits[row.run_key.partition("/proposal")[0]].append(row)
    nothing: dict[str, float] = {}
    planted = gaps.try_to(
        "the planted truth",
        lambda: _planted(reader, config, source, questions, workspace, texts, decisions.values()),
        nothing,
    )
    made = []
    for key in sorted(steps.keys() | decisions.keys()):
        step, decision = steps.get(key), decisions.get(key)
        no_paths: tuple[Path, ...] = ()
        paths = no_paths
        if decision is not None:
            paths = gaps.try_to(f"looks of {key}", partial(paths_of, decision), no_paths)
        made.append(_candidate(key, step, decision, edits[key], texts, paths, planted.get(key)))
    return tuple(sorted(made, key=lambda one: (one.epoch, one.task_type, one.step)))


def _candidate(
    key: str,
    step: StepRow | None,
    decision: DecisionRow | None,
    edits: Sequence[EditRow],
    texts: Mapping[str, str],
    paths: tuple[Path, ...],
    gain: float | None,
) -> Candidate:
    row = step or decision
    assert row is not None, "made of one or the other"
    result = step.result if step else decision.verdict if decision else ""
    before = after = None
    if decision is not None:
        before, after = texts.get(decision.current_hash), texts.get(decision.candidate_hash)
    return Candidate(
        run_key=key,
        epoch=row.epoch,
        step=row.step,
        task_type=row.task_type,
        result=result,
        row=step,
        decision=decision,
        edits=tuple(edits),
        paths=paths,
        diff=_diff(before, after) if before is not None and after is not None else (),
        evidence_pass=f"{key}/rollout",
        gain=gain,
        worth="" if gain is None else classify(gain),
    )


def _diff(before: str | None, after: str | None) -> tuple[Line, ...]:
    """By words, without the two lines that name the files."""
    lines = compare_texts(("", ""), before, after, words=True, context=_CONTEXT)
    return tuple(line for line in lines if line.mark != "file")


def paths_of(decision: DecisionRow) -> tuple[Path, ...]:
    """The e-value over the test's stages; one where the profile has one."""
    stages = _STAGES.decode(decision.stages)
    accepting = accept_looks(decision.n_units)
    if not stages:
        looks = _LOOKS.decode(decision.looks)
        return (
            Path(
                name="",
                alpha=decision.alpha,
                n_units=decision.n_units,
                looks=looks,
                accepting=accepting,
                verdict=decision.verdict,
                reason=decision.reason,
            ),
        )
    return tuple(
        Path(
            name=f"stage {number}",
            alpha=stage.alpha,
            n_units=decision.n_units,
            looks=stage.looks,
            accepting=accepting,
            verdict=stage.verdict,
            reason=stage.reason,
        )
        for number, stage in enumerate(stages, start=1)
    )


def _planted(
    reader: Reader,
    config: Config,
    source: File,
    questions: Sequence[Question],
    workspace: File,
    texts: Mapping[str, str],
    decisions: Iterable[DecisionRow],
) -> dict[str, float]:
    """What each candidate is truly worth, by its step; empty unless the simulator answered."""
    if "search" not in simulated_roles(config):
        return {}
    world = load_world(resolve_path(config.twin.world, source).read_bytes())
    began = read_json(workspace / SEED, SeedInfo, "restore it from the seed").prompts_version
    stood = {row.epoch: row.prompts_version for row in reader.rows(EpochRow)}
    gains = {}
    for row in decisions:
        version = stood.get(row.epoch - 1, began)
        prompts = prompts_text(read_prompts(workspace / "prompts", version))
        before, after = texts.get(row.current_hash), texts.get(row.candidate_hash)
        if before is not None and after is not None:
            gains[row.run_key] = _worth(world, questions, row.task_type, (before, after), prompts)
    return gains


def _worth(
    world: World,
    questions: Sequence[Question],
    task_type: str,
    texts: tuple[str, str],
    prompts: str,
) -> float:
    before, after = (class_accuracy(world, questions, task_type, text, prompts) for text in texts)
    return after - before


# -- slow updates -----------------------------------------------------------------------


def slow_updates_of(workspace: File, reader: Reader | None, gaps: Gaps) -> tuple[SlowUpdate, ...]:
    """Every epoch's, with what it would have changed where it was dropped."""
    if reader is None:
        return ()
    edits = reader.rows(EditRow)
    found = []
    for row in reader.rows(SlowRow):
        key = f"{slow_key(row.epoch)}/"
        unknown: Diffs = ()
        what = f"what the slow update of epoch {row.epoch} changed"
        diffs = gaps.try_to(what, partial(_changed, workspace, row), unknown)
        own = tuple(edit for edit in edits if edit.run_key.startswith(key))
        found.append(SlowUpdate(row=row, edits=own, diffs=diffs))
    return tuple(found)


def _changed(workspace: File, row: SlowRow) -> Diffs:
    """The documents that its versions have and their parents have not; none without a candidate."""
    if row.result not in ("kept", "dropped"):
        return ()
    found: list[tuple[str, tuple[Line, ...]]] = []
    versions: tuple[tuple[Kind, str], ...] = (
        ("skills", row.skills_version),
        ("prompts", row.prompts_version),
    )
    for kind, version in versions:
        meta = read_meta(workspace / kind, version)
        if meta.parent is None or not meta.trigger.endswith(f"epoch-{row.epoch}-slow"):
            continue
        before, after = (texts_of(workspace, kind, name) for name in (meta.parent, version))
        found += [
            (name, _diff(before.get(name), after.get(name)))
            for name in sorted(before.keys() | after.keys())
        ]
    return tuple((name, lines) for name, lines in found if lines)


# -- documents --------------------------------------------------------------------------


def documents_of(
    workspace: File, reader: Reader | None, package: Package, gaps: Gaps
) -> tuple[Provenance, ...]:
    """The documents of a package that differ from the seed's, every line with its edit."""
    if reader is None:
        return ()
    found: list[Provenance] = []
    versions: tuple[tuple[Kind, str], ...] = (
        ("skills", package.skills),
        ("prompts", package.prompts),
    )
    for kind, version in versions:
        none: dict[str, str] = {}
        read = partial(texts_of, workspace, kind, version)
        texts = gaps.try_to(f"{kind}/{version}", read, none)
        for name, text in texts.items():
            told = _document(workspace, reader, kind, version, name, text)
            if told.why_not or any(line.key for line in told.lines):
                found.append(told)
    return tuple(found)


def _document(
    workspace: File, reader: Reader, kind: Kind, version: str, name: str, text: str
) -> Provenance:
    place = f"{kind}/{version}"
    try:
        history = lineage(workspace, reader, kind, version, name)
        keys = blame_lines(history.seed, changes_of(history))
    except (UnknownText, WorkspaceError, ValueError) as error:
        lines = tuple(Told(line, "") for line in lines_of(text))
        return Provenance(name=name, version=place, lines=lines, why_not=str(error))
    told = zip(keys, lines_of(history.text), strict=True)
    return Provenance(
        name=name, version=place, lines=tuple(Told(line, key or "") for key, line in told)
    )
