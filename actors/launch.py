"""From arguments to a run that may start: everything that can be wrong is looked at first.

A fresh run writes nothing before all is checked, and then a whole workspace at once. A resumed
one takes the workspace's lock before it reads anything, and changes nothing if it is refused.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import msgspec

from actors.cache.settings import resolve_cache
from actors.config import (
    ROOT,
    ConfigError,
    changed_keys,
    dump_config,
    load_config,
)
from actors.dataset.errors import DataError
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.embedder.actor import check_embedder
from actors.factorial_config import fixed_problems
from actors.launch_changes import accepted_lines, setting_changes
from actors.launch_data import check_data, check_skills
from actors.launch_places import Findings, places_of, places_of_broken, with_places
from actors.launch_settings import (
    CONFIG,
    begun_with,
    finish_settings,
    put_settings,
    settings_sha256,
)
from actors.llm.endpoints import resolve_endpoints
from actors.places import to_write
from actors.system import Paths, local_model
from actors.twin.catalog import LoadError, load_catalog
from actors.video.fingerprint import trees_fingerprint
from actors.workspace.atomic import sweep_tmp
from actors.workspace.create import init_workspace_from_seed, latest_workspace, next_workspace
from actors.workspace.errors import WorkspaceError
from actors.workspace.files import sha256_hex
from actors.workspace.lock import WorkspaceLock
from actors.workspace.manifest import read_manifest
from actors.workspace.seed import BASELINE, open_seed
from protocol.settings import Config
from protocol.workspace import Manifest

__all__ = ["Launch", "check_surroundings", "check_world", "fresh", "resume", "resume_problems"]

_OTHER_FILES = 200  # databases, logs, trees, a Redis pool
DEMO = ROOT / "config" / "demo.yaml"


@dataclass(frozen=True)
class Launch:
    """A run that is ready to start. lock: held. accepted: changes that were accepted by name."""

    config: Config
    paths: Paths
    run_id: str
    resumed: bool
    lock: WorkspaceLock
    accepted: tuple[str, ...]


def fresh(config_path: Path | None, assignments: Sequence[str], workspace: Path | None) -> Launch:
    """Make a workspace and lock it.

    Raises ConfigError, WorkspaceError, DataError or OSError; nothing is written then.
    """
    source = config_path or DEMO
    config, places, trees_sha256 = _looked_at(source, assignments)
    free = workspace or next_workspace(to_write(config.run.workspaces), config.run.name)
    chosen = free.resolve()
    run_id = f"{config.run.name}-{settings_sha256(config)[:8]}"
    init_workspace_from_seed(
        places["seed"],
        chosen,
        run_id,
        settings_sha256=settings_sha256(config),
        trees_sha256=trees_sha256,
        beside={CONFIG: dump_config(config).encode()},
    )
    lock = WorkspaceLock(chosen)
    lock.acquire()
    return Launch(config, _paths(chosen, places), run_id, resumed=False, lock=lock, accepted=())


def _looked_at(source: Path, assignments: Sequence[str]) -> tuple[Config, dict[str, Path], str]:
    """The configuration of a fresh run, its files and the trees' fingerprint.

    Raises ConfigError, WorkspaceError, DataError or OSError with all that is wrong.
    """
    found = Findings()
    config = found.attempt(lambda: load_config(source, assignments))
    if config is None:
        places, absent = places_of_broken(source, assignments)
    else:
        found.attempt(lambda: check_surroundings(config))
        places, absent = places_of(config, source)
    found.add(absent)
    checked = _check_material(found, config, places)
    found.stop()
    assert config is not None, "what stopped it was found"
    assert checked is not None, "what stopped it was found"
    return with_places(config, places), places, checked


def _check_material(
    found: Findings, config: Config | None, places: Mapping[str, Path]
) -> str | None:
    """What stands in the files, as far as they are there; returns the trees' fingerprint.

    config: None if it cannot be used, so that nothing is asked that hangs on it.
    """
    dataset = frozen = seed = None
    if "questions" in places:
        duration = None if config is None else config.data.duration
        dataset = found.attempt(
            lambda: load_dataset(places["questions"], places.get("exclude"), duration=duration)
        )
    if "seed" in places:
        seed = found.attempt(lambda: open_seed(places["seed"]))
    excluded = config is not None and (config.data.exclude is None or "exclude" in places)
    if dataset is not None and seed is not None and excluded:
        frozen = found.attempt(lambda: load_frozen(places["seed"], dataset.questions))
    if seed is not None:
        found.attempt(lambda: check_skills(places["seed"], seed.info.skills_version))
    if config is not None:
        if frozen is not None:
            found.attempt(lambda: check_data(config, frozen))
        if dataset is not None:
            found.attempt(lambda: check_world(places.get("world"), places["questions"]))
    if dataset is None or "trees" not in places:
        return None
    ids = {one.video_id for one in (dataset.questions if frozen is None else frozen.questions)}
    pictures = config is not None and _pictures(config)
    return found.attempt(lambda: _check_trees(ids, places["trees"], pictures=pictures))


def resume(
    config_path: Path | None,
    assignments: Sequence[str],
    workspace: Path | None,
    accept: Sequence[str],
) -> Launch:
    """Lock a workspace and see that it is the run that it was.

    workspace: None: the latest of the configured name. accept: keys that may differ.
    Raises as ``fresh`` does; the workspace is unchanged then.
    """
    found = _to_resume(config_path, assignments, workspace)
    lock = WorkspaceLock(found)
    lock.acquire()
    try:
        return _resume(config_path, assignments, found, accept, lock)
    except BaseException:
        lock.release()
        raise


def _resume(
    config_path: Path | None,
    assignments: Sequence[str],
    workspace: Path,
    accept: Sequence[str],
    lock: WorkspaceLock,
) -> Launch:
    sweep_tmp(workspace)
    manifest = read_manifest(workspace)
    finish_settings(workspace, manifest)
    stored = begun_with(workspace, manifest)
    source = config_path or workspace / CONFIG
    config, places = _with_places(load_config(source, assignments), source)
    check_surroundings(config)
    changed = changed_keys(stored, config)
    if problems := fixed_problems(stored, config, changed):
        raise ConfigError(problems)
    accepted = accepted_lines(workspace, changed, accept)
    trees_sha256 = _check_inputs(workspace, config, places, manifest, began=stored)
    _check_log(workspace)
    settings, renewed = settings_sha256(config), manifest
    if settings != manifest.settings_sha256:
        renewed = msgspec.structs.replace(
            manifest,
            settings_sha256=settings,
            trees_sha256=trees_sha256,
            changes=(*manifest.changes, *setting_changes(changed, manifest.epoch)),
        )
    put_settings(workspace, config, manifest, renewed)
    return Launch(config, _paths(workspace, places), manifest.run_id, True, lock, accepted)


def _check_log(workspace: Path) -> None:
    """Raises OSError naming the log if it cannot be written; a line of it may get lost later."""
    log = workspace / "logs" / "train.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.open("a", encoding="utf-8").close()


def resume_problems(workspace: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What ``resume`` would refuse now: of the workspace and its inputs, and of this machine.

    Both empty: it would go on, unless another process holds the lock. Takes no lock and changes
    nothing.
    """
    own: list[str] = []
    here: list[str] = []
    try:
        manifest = read_manifest(workspace)
        config = begun_with(workspace, manifest)
        config, places = _with_places(config, workspace / CONFIG)
    except (ConfigError, WorkspaceError, OSError) as error:
        return (str(error),), ()
    try:
        _check_inputs(workspace, config, places, manifest, began=config)
    except (ConfigError, WorkspaceError, DataError, OSError) as error:
        own.append(str(error))
    try:
        check_surroundings(config)
    except ConfigError as error:
        here.append(str(error))
    return tuple(own), tuple(here)


def _check_inputs(
    workspace: Path, config: Config, places: dict[str, Path], manifest: Manifest, *, began: Config
) -> str:
    """Refuse other files than the run began with, under the configuration ``began``.

    Returns the trees' fingerprint under ``config``: pictures may come into use only now.
    """
    problems = []
    if sha256_hex((workspace / BASELINE).read_bytes()) != manifest.baseline_sha256:
        problems.append(f"{workspace / BASELINE}: was changed since the run began; restore it")
    dataset = load_dataset(
        places["questions"], places.get("exclude"), duration=config.data.duration
    )
    frozen = load_frozen(workspace, dataset.questions)
    ids = {question.video_id for question in frozen.questions}
    found = _check_trees(ids, places["trees"], pictures=_pictures(began))
    if found != manifest.trees_sha256:
        problems.append(f"{places['trees']}: the trees (or pictures) changed since the run began")
    if problems:
        raise ConfigError([*problems, "Restore them, or begin a fresh run"])
    if config.agent.vision == began.agent.vision:
        return found
    return _check_trees(ids, places["trees"], pictures=_pictures(config))


def _to_resume(
    config_path: Path | None, assignments: Sequence[str], workspace: Path | None
) -> Path:
    found = workspace
    if found is None:
        config = load_config(config_path or DEMO, assignments)
        root = to_write(config.run.workspaces)
        found = latest_workspace(root, config.run.name)
        if found is None:
            place = root / f"{config.run.name}-NNN"
            raise ConfigError([f"--resume: there is no {place}; start one with bin/train"])
    if not (found / "manifest.json").is_file():
        hint = "; CONFIG goes before --resume" if found.suffix in (".yaml", ".yml") else ""
        raise ConfigError([f"--resume {found}: is no workspace (it has no manifest.json){hint}"])
    return found.resolve()


def _with_places(config: Config, source: Path) -> tuple[Config, dict[str, Path]]:
    """The configuration with paths that hold from anywhere, and the places themselves."""
    places, absent = places_of(config, source)
    if absent:
        raise ConfigError(absent)
    return with_places(config, places), places


def _paths(workspace: Path, places: dict[str, Path]) -> Paths:
    return Paths(
        workspace=workspace,
        questions=places["questions"],
        trees=places["trees"],
        world=places.get("world"),
        exclude=places.get("exclude"),
    )


def _check_search(config: Config) -> None:
    if config.data.search != "bm25":
        check_embedder(config.embedding, local_model(config), os.environ)


def check_surroundings(config: Config) -> None:
    """What the environment must hold: keys of endpoints, sane cache settings (row P1-1).

    Raises ConfigError with all that is wrong.
    """
    problems = []
    checks: tuple[Callable[[], object], ...] = (
        lambda: resolve_endpoints(config.llm.endpoints, os.environ, config.llm.concurrency),
        lambda: _check_search(config),
        lambda: resolve_cache(config.cache, os.environ),
        lambda: _allow_open_files(config),
    )
    for check in checks:
        try:
            check()
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError(problems)


def _allow_open_files(config: Config) -> None:
    """Every request in flight is a connection: raise this process's limit, or refuse to start.

    Raises ValueError naming the limit, since a run that meets it fails hours later.
    """
    ceilings = [e.concurrency or config.llm.concurrency for e in config.llm.endpoints]
    wanted = sum(ceilings) + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError) as error:
        raise ValueError(
            f"the endpoints' ceilings add up to {sum(ceilings)} connections, this process may "
            f"open {soft} files and no more than `ulimit -Hn` says: raise that, or lower "
            "llm.concurrency"
        ) from error


def check_world(world: Path | None, questions: Path) -> None:
    """The simulator answers only what its planted world holds.

    world: None without the simulator. Raises ConfigError naming the question and what to do.
    """
    if world is None:
        return
    try:
        load_catalog(world, questions)
    except LoadError as error:
        raise ConfigError(
            [
                f"twin.world: {error}",
                "The simulator knows exactly the questions of its world, such as the demo's: name "
                "endpoints of your own in llm.endpoints, or a twin.world made for these questions",
            ]
        ) from error


def _pictures(config: Config) -> bool:
    """Whether the agent sees what lies beside the trees."""
    return config.agent.vision != "none"


def _check_trees(ids: Set[str], trees: Path, *, pictures: bool) -> str:
    """Every video has a tree; returns the fingerprint of them all, and of pictures in use."""
    digest, problems = trees_fingerprint(trees, ids, pictures=pictures)
    if problems:
        what = f"data.trees: {len(problems)} videos have no tree, such as"
        remedy = f"make each with `bin/trm tree VIDEO --out {trees}`, or name their folder"
        raise ConfigError([what, *(f"  {problem}" for problem in problems[:3]), f"  {remedy}"])
    return digest
