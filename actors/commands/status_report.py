"""What a folder is, and whether what it says of itself is so. Reads only, and never raises.

Every check is made, whatever the others found: a broken folder is described as far as it can be,
with every problem and its remedy.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from actors.commands.status_factorial import look_at_factorial
from actors.commands.status_parts import (
    Looking,
    Status,
    Trouble,
    look_at_questions,
    look_at_seed,
    look_at_unfinished,
)
from actors.config import ROOT, load_config, resolve_path
from actors.dataset.pools import load_frozen
from actors.dataset.preflight import preflight
from actors.dataset.questions import Dataset, load_dataset
from actors.launch import resume_problems
from actors.ledger.reader import Reader, open_reader
from actors.trainer.state import TrainerState
from actors.workspace.checkpoint import CheckpointStore
from actors.workspace.lock import LOCK, lock_holder
from actors.workspace.manifest import MANIFEST, read_manifest
from actors.workspace.seed import BASELINE, POOLS, SEED, SPLIT_MANIFEST
from actors.workspace.versions import list_versions
from protocol.rows import DecisionRow, EpochRow, EvaluationRow, OutcomeRow, StepRow
from protocol.settings import Config
from protocol.workspace import Manifest

__all__ = ["Status", "Trouble", "inspect_folder", "resume_refused"]

CONFIG = "config.yaml"
CHECKPOINT = "checkpoint.json"
RUN_DB = "run.db"
_REFUSED = "refused: "


def inspect_folder(
    path: Path, questions: Path | None = None, exclude: Path | None = None
) -> Status:
    """Look at a workspace or a seed.

    questions, exclude: to hold the pools against; a workspace names its own, and a questions.jsonl
    in a seed is its own.
    """
    folder = path.parent if path.is_file() else path
    looking = Looking(folder)
    kind = looking.try_to(".", "check its permissions", lambda: _kind(folder)) or "nothing"
    if kind == "workspace":
        _workspace(looking)
    elif kind == "seed":
        look_at_seed(looking, look_at_questions(looking, questions, exclude))
    elif kind == "seed under construction":
        look_at_unfinished(looking, look_at_questions(looking, questions, exclude))
    elif kind == "work folder":
        _work(looking)
    return Status(
        path=str(path),
        kind=kind,
        consistent=kind != "nothing" and not looking.problems,
        facts=looking.facts,
        problems=tuple(looking.problems),
    )


def resume_refused(workspace: Path) -> bool:
    """Whether ``bin/train --resume`` would be refused there, by every check of ``trm status``."""
    return str(inspect_folder(workspace).facts.get("resume", _REFUSED)).startswith(_REFUSED)


def _kind(folder: Path) -> str:
    if not folder.is_dir():
        return "nothing"
    there = {entry.name for entry in folder.iterdir()}
    if MANIFEST in there or {CHECKPOINT, CONFIG} <= there or {SEED, RUN_DB} <= there:
        return "workspace"
    if SEED in there:
        return "seed"
    if RUN_DB in there and LOCK in there:
        return "work folder"
    if there & {BASELINE, POOLS, SPLIT_MANIFEST}:
        return "seed under construction"
    if any(list_versions(folder / name) for name in ("skills", "prompts")):
        return "seed under construction"
    return "nothing"


# -- workspaces -------------------------------------------------------------------------


def _workspace(looking: Looking) -> None:
    folder = looking.folder
    manifest = looking.try_to(
        MANIFEST, "restore it from a copy, or begin a fresh run", lambda: read_manifest(folder)
    )
    if manifest is not None:
        looking.facts["run_id"] = manifest.run_id
        looking.facts["epoch"] = manifest.epoch
        looking.facts["current"] = str(manifest.current)
        looking.facts["best"] = str(manifest.best_hard)
        looking.facts["best_mixed"] = str(manifest.best_mixed)
        looking.facts["settings_sha256"] = manifest.settings_sha256
        looking.facts["trees_sha256"] = manifest.trees_sha256
        if manifest.changes:
            looking.facts["changed"] = list(map(str, manifest.changes))
        _pointers(looking, manifest)
    held = _lock(looking)
    own = _own_questions(looking)
    look_at_seed(looking, None if own is None else own[1])
    if own is not None:
        _trained(looking, *own)
    _ledger(looking, manifest, held=held)
    _resume(looking, held=held)


def _own_questions(looking: Looking) -> tuple[Config, Dataset] | None:
    """The workspace's configuration, and the questions that it names."""
    path = looking.folder / CONFIG

    def load() -> tuple[Config, Dataset]:
        config = load_config(path)
        exclude = config.data.exclude
        return config, load_dataset(
            resolve_path(config.data.questions, path),
            None if exclude is None else resolve_path(exclude, path),
            duration=config.data.duration,
        )

    found = looking.try_to(CONFIG, f"see {ROOT / 'config'}", load)
    if found is not None:
        looking.facts["questions"] = len(found[1].questions)
    return found


def _trained(looking: Looking, config: Config, dataset: Dataset) -> None:
    """Of diag and val, the questions that a run uses: those of classes that train."""
    folder = looking.folder
    frozen = looking.try_to(POOLS, "split anew", lambda: load_frozen(folder, dataset.questions))
    if frozen is None:
        return
    classes = preflight(
        frozen.diag,
        frozen.val,
        frozen.test,
        eval_min_per_class=config.data.eval_min_per_class,
        trainable_min_units=config.data.trainable_min_units,
    )
    trained = [one for one in classes if one.trainable]
    looking.facts["trained_pools"] = {
        "diag": sum(one.n_diag for one in trained),
        "val": sum(one.n_val for one in trained),
    }


def _pointers(looking: Looking, manifest: Manifest) -> None:
    for key in ("current", "best_hard", "best_mixed"):
        package = getattr(manifest, key)
        for kind, version in (("skills", package.skills), ("prompts", package.prompts)):
            if version not in list_versions(looking.folder / kind):
                what = f"points at {kind}/{version}, which is not there"
                looking.add(f"{MANIFEST}: {key}", what, "restore that version from a copy")


def _lock(looking: Looking) -> bool:
    """Whether a process runs on it; None could not be said."""
    holder = looking.try_to(LOCK, "check the permissions", lambda: (lock_holder(looking.folder),))
    if holder is None or holder[0] is None:
        looking.facts["in_use"] = None if holder is None else False
        return False
    looking.facts["in_use"] = True
    looking.facts["held_by"] = holder[0].pid
    return True


def _ledger(looking: Looking, manifest: Manifest | None, *, held: bool) -> None:
    path = looking.folder / RUN_DB
    if not path.exists():
        looking.facts["calls"] = 0
        if manifest is not None and manifest.epoch > 0:
            what = f"is missing, {MANIFEST} is at epoch {manifest.epoch}"
            looking.add(RUN_DB, what, "restore it from a copy, or begin a fresh run")
        return
    found = looking.try_to(
        RUN_DB,
        "restore it from a copy, or begin a fresh run",
        lambda: _read_ledger(looking, path, held=held),
    )
    if found is None or held:
        return  # a run under way is between two boundaries now and then
    last, evaluated = found
    _checkpoint(looking, manifest, last, evaluated)


def _read_ledger(looking: Looking, path: Path, *, held: bool) -> tuple[int, frozenset[int]]:
    """The facts in run.db; returns the last epoch row and the epochs with a final pass on val."""
    log = path.with_name(f"{path.name}-wal")
    unsettled = log.exists() and log.stat().st_size > 0
    with open_reader(path, at_rest=not held and not unsettled) as reader:
        spent = reader.spent()
        outcomes = Counter(row.outcome for row in reader.rows(OutcomeRow))
        kinds = Counter(
            row.missing_kind or "unknown"
            for row in reader.rows(OutcomeRow)
            if row.outcome == "missing"
        )
        looking.facts["calls"] = spent.calls
        looking.facts["tokens"] = spent.prompt_tokens + spent.completion_tokens
        looking.facts["usd"] = round(spent.usd, 4)
        looking.facts["outcomes"] = {
            name: outcomes.get(name, 0) for name in ("right", "wrong", "missing")
        }
        looking.facts["missing_by_kind"] = dict(sorted(kinds.items()))
        looking.facts["steps"] = len(reader.rows(StepRow))
        if not look_at_factorial(looking, reader):
            verdicts = Counter(row.verdict for row in reader.rows(DecisionRow))
            looking.facts["decisions"] = dict(sorted(verdicts.items()))
        looking.facts["val"] = _val_passes(reader)
        epochs = [row.epoch for row in reader.rows(EpochRow)]
        finals = frozenset(
            row.epoch
            for row in reader.rows(EvaluationRow)
            if row.pool == "val" and row.kind == "final"
        )
    return max(epochs, default=0), finals


def _val_passes(reader: Reader) -> dict[str, str]:
    """``right/planned`` of the seed's pass and of every final one."""
    rows = [row for row in reader.rows(EvaluationRow) if row.pool == "val"]
    return {
        "seed" if row.epoch == 0 else f"epoch {row.epoch}": f"{row.right}/{row.planned}"
        for row in sorted(rows, key=lambda row: row.epoch)
        if row.kind in ("seed", "final")
    }


def _checkpoint(
    looking: Looking, manifest: Manifest | None, last: int, evaluated: frozenset[int]
) -> None:
    """Whether checkpoint, run.db and manifest stand at one epoch, as a resumed run demands."""
    if manifest is None:
        return
    store = CheckpointStore(looking.folder / CHECKPOINT, manifest.run_id)
    damage = store.damage()
    remedy = "restore it from a copy; checkpoint.json.prev is used meanwhile"
    if damage is not None:
        looking.add(CHECKPOINT, damage.what, remedy)
    states = looking.try_to(CHECKPOINT, "begin a fresh run", store.load)
    if damage is not None and states is not None and not (looking.folder / CHECKPOINT).is_dir():
        looking.recoverable += [known for known in looking.problems if known.what == damage.what]
    epoch = 0
    if states is not None and "trainer" in states:
        state = looking.try_to(
            CHECKPOINT,
            "begin a fresh run",
            lambda: msgspec.json.decode(states["trainer"], type=TrainerState),
        )
        if state is None:
            return
        epoch = state.epoch
        if epoch == last - 1 and state.observed_epoch == last:
            return
    looking.facts["checkpoint_epoch"] = epoch
    if epoch != last and not (epoch == last + 1 and epoch in evaluated):
        what = f"is at epoch {epoch}, {RUN_DB} at epoch {last}"
        looking.add(CHECKPOINT, what, "restore the file that belongs to the other")
    if manifest.epoch > max(epoch, last):
        what = f"is at epoch {manifest.epoch}, {CHECKPOINT} at {epoch}, {RUN_DB} at {last}"
        looking.add(MANIFEST, what, "restore the files that belong together")


def _resume(looking: Looking, *, held: bool) -> None:
    """Whether ``bin/train --resume`` would go on, and why not."""
    found = looking.try_to(
        looking.folder.name, "see above", lambda: resume_problems(looking.folder)
    )
    own, here = ((), ()) if found is None else found
    for problem in own:
        if all(known.what not in problem for known in looking.problems):  # told already
            looking.add("resume", problem, "then `bin/train --resume` goes on")
    why = [*here, *([f"process {looking.facts['held_by']} runs on it"] if held else [])]
    if any(known not in looking.recoverable for known in looking.problems):
        why.append("the problems below")
    going = f"would go on, from {CHECKPOINT}.prev" if looking.recoverable else "would go on"
    looking.facts["resume"] = going if not why else _REFUSED + "; ".join(why)


def _work(looking: Looking) -> None:
    """What ``trm seed --from-scratch`` and ``trm diagnose`` keep: answers, not yet a seed."""
    held = _lock(looking)
    _ledger(looking, None, held=held)
    looking.facts["next"] = "start the command again that made it; it goes on from here"
