"""What lies beside ``run.db``: documents, manifest and checkpoint agree with its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from actors.trainer.state import TrainerState, best_of
from actors.workspace.checkpoint import CheckpointStore
from actors.workspace.manifest import read_manifest
from actors.workspace.versions import list_versions, read_meta, read_prompts, read_skills
from protocol.documents import Package, PackageTexts
from protocol.rows import EpochRow, EvaluationRow, OutcomeRow

__all__ = ["broken_files"]


def broken_files(
    workspace: Path,
    epochs: Sequence[EpochRow],
    evaluations: Sequence[EvaluationRow],
    outcomes: Mapping[str, Mapping[str, OutcomeRow]],
) -> Iterator[str]:
    """Raises WorkspaceError where a file cannot be read at all. outcomes: by pass, question."""
    for path in sorted(workspace.rglob("*.tmp")):
        yield f"{path.relative_to(workspace)}: left behind"
    yield from _broken_versions(workspace)
    yield from _broken_texts(workspace, evaluations, outcomes)
    manifest = read_manifest(workspace)
    states = CheckpointStore(workspace / "checkpoint.json", manifest.run_id).load()
    if states is not None:
        state = msgspec.json.decode(states["trainer"], type=TrainerState)
        said = (state.epoch, state.current, state.best_hard, state.best_mixed)
        if said != (manifest.epoch, manifest.current, manifest.best_hard, manifest.best_mixed):
            yield f"checkpoint.json says {said}, manifest.json {manifest}"
    if not epochs:
        return
    last = max(epochs, key=lambda row: row.epoch)
    if manifest.epoch != last.epoch:
        yield f"manifest.json is at epoch {manifest.epoch}, run.db at {last.epoch}"
    if manifest.current != Package(skills=last.skills_version, prompts=last.prompts_version):
        yield f"manifest.json: current is {manifest.current}, epoch {last.epoch} ended with {last}"
    whole = [row for row in evaluations if row.epoch <= last.epoch]
    for metric, package in (("hard", manifest.best_hard), ("mixed", manifest.best_mixed)):
        best = best_of(whole, metric)
        if package != best:
            yield f"manifest.json: best_{metric} is {package}, the rows say {best}"


def _broken_versions(workspace: Path) -> Iterator[str]:
    """Every version is whole; numbers follow each other; a parent is older."""
    for kind in ("skills", "prompts"):
        folder = workspace / kind
        names = list_versions(folder)
        if names != tuple(f"v{number}" for number in range(1, len(names) + 1)):
            yield f"{kind}: versions {names}"
        for name in names:
            (read_skills if kind == "skills" else read_prompts)(folder, name)
            parent = read_meta(folder, name).parent
            if parent is not None and parent not in names[: names.index(name)]:
                yield f"{kind}/{name}: its parent {parent} is not before it"


def _broken_texts(
    workspace: Path,
    evaluations: Sequence[EvaluationRow],
    outcomes: Mapping[str, Mapping[str, OutcomeRow]],
) -> Iterator[str]:
    """A package's pass was answered with that package's own texts."""
    for row in evaluations:
        texts = PackageTexts(
            package=Package(skills=row.skills_version, prompts=row.prompts_version),
            skills=read_skills(workspace / "skills", row.skills_version),
            prompts=read_prompts(workspace / "prompts", row.prompts_version),
        )
        for answer in outcomes.get(row.outcomes_key, {}).values():
            if answer.skill_hash != texts.skill_for(answer.task_type).hash:
                yield f"{row.outcomes_key} {answer.question_id}: another text than {row.run_key}'s"
