"""A seed from scratch: one baseline pass with a configured endpoint (row seed).

The pass is the dear part. It is done in a work folder beside the seed, whose cache keeps every
answer: started again after a stop, a crash or an outage, the same command asks only for what is
missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import msgspec

from actors.commands.seed_making import (
    CONFIG,
    Baseline,
    Made,
    Origin,
    SeedOptions,
    documents_of,
    finish_seed,
    require_skills,
    write_baseline,
)
from actors.commands.seed_options import Inputs, OptionError, named_ids
from actors.commands.seeding import BaselinePass, baseline_pass
from actors.config import ConfigError, agent_of, dump_config, resolve_path
from actors.dataset.fingerprint import dataset_fingerprint
from actors.dataset.split import choose_videos
from actors.launch import check_surroundings, check_world
from actors.logs import configure_logs
from actors.system import Paths, uses_twin
from actors.video.store import find_tree
from actors.video.tree import TreeError, parse_tree
from actors.workspace.atomic import write_atomic
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.errors import SeedError
from actors.workspace.files import read_json
from actors.workspace.lock import WorkspaceLock
from actors.workspace.seed import BASELINE, SEED
from protocol.documents import PackageTexts
from protocol.seed import SeedInfo
from protocol.settings import Config

__all__ = ["PassIncomplete", "from_scratch", "with_cache"]

_SHOWN = 10


class PassIncomplete(Exception):
    """Questions without an outcome or a diagnosis. lasting: waiting alone mends none of them."""

    def __init__(self, message: str, *, lasting: bool) -> None:
        super().__init__(message)
        self.lasting = lasting


def from_scratch(options: SeedOptions, inputs: Inputs) -> Made:
    """Answer every question once, judge the wrong answers, split, seal.

    Raises PassIncomplete if an outcome or a diagnosis is missing, seeding.Stopped after a signal
    (what was answered is kept either way), WorkspaceInUse, and what ``finish_seed`` raises.
    """
    config = with_cache(inputs.config)
    _refuse_other_seed(options, inputs, config)
    _refuse_other_baseline(options)
    check_surroundings(config)
    skills, prompts = documents_of(options, Origin())
    texts = require_skills(inputs, skills, prompts)
    paths, subtitles = _paths(options, inputs)
    _refuse_impossible(options, inputs)
    options.work.mkdir(parents=True, exist_ok=True)
    with WorkspaceLock(options.work):
        write_atomic(options.work / CONFIG, dump_config(config).encode())
        (options.work / "logs").mkdir(exist_ok=True)
        file = configure_logs(
            options.work / "logs" / "seed.jsonl", config.run.log_level, f"seed-{options.name}"
        )
        assert file is not None, "a path was given"
        try:
            found = anyio.run(_pass, config, paths, inputs, texts, options)
        finally:
            configure_logs(None, "warning", None)
            file.close()
        _refuse_incomplete(options, found, len(inputs.dataset.questions))
        baseline = Baseline(
            options.run_id or f"{options.name}-baseline",
            found.predictions,
            found.diagnoses,
            options.work / BASELINE,
        )
        make_baseline_db(
            options.work / BASELINE, baseline.run_id, baseline.predictions, baseline.diagnoses
        )
        split = info = None
        if options.baseline_only:
            write_baseline(options, baseline)
        else:
            split, info = finish_seed(
                options, inputs, baseline, skills, prompts, subtitles, agent_of(config)
            )
    return Made(
        folder=options.out,
        run_id=baseline.run_id,
        predictions=len(baseline.predictions),
        diagnoses=len(baseline.diagnoses),
        extracted=None,
        split=split,
        info=info,
    )


def with_cache(config: Config) -> Config:
    """Offline work is not asked twice: where no cache is configured, the work folder has one."""
    if config.cache.backend != "none":
        return config
    return msgspec.structs.replace(
        config, cache=msgspec.structs.replace(config.cache, backend="sqlite")
    )


async def _pass(
    config: Config, paths: Paths, inputs: Inputs, texts: PackageTexts, options: SeedOptions
) -> BaselinePass:
    return await baseline_pass(config, paths, inputs.dataset.questions, texts, say=options.say)


def _paths(options: SeedOptions, inputs: Inputs) -> tuple[Paths, bool]:
    """Where everything lies, and whether the trees have subtitles. Every tree is read once."""
    config = inputs.config
    trees = resolve_path(config.data.trees, inputs.config_path)
    world = resolve_path(config.twin.world, inputs.config_path) if uses_twin(config) else None
    check_world(world, inputs.questions_path)
    problems = []
    subtitles = False
    for video_id in sorted({question.video_id for question in inputs.dataset.questions}):
        try:
            path = find_tree(trees, video_id)
            tree = parse_tree(path.read_bytes(), str(path))
        except (TreeError, OSError) as error:
            problems.append(f"  {error}")
            continue
        subtitles = subtitles or any(node.subtitle.strip() for node in tree.nodes.values())
    if problems:
        shown = problems[:5]
        raise ConfigError([f"data.trees: {len(problems)} videos have no usable tree:", *shown])
    paths = Paths(
        workspace=options.work.resolve(),
        questions=inputs.questions_path,
        trees=trees,
        world=world,
        exclude=inputs.exclude_path,
    )
    return paths, subtitles if options.subtitles is None else options.subtitles


def _refuse_impossible(options: SeedOptions, inputs: Inputs) -> None:
    """A split that no outcome could make possible is told before the pass is paid for."""
    if options.baseline_only or options.pools is not None:
        return
    parameters = options.parameters(None)
    videos = {question.video_id: question.sub_category for question in inputs.dataset.questions}
    choose_videos(
        videos,
        n_trainval=parameters.n_trainval,
        n_test=parameters.n_test,
        seed=parameters.seed,
    )


def _refuse_other_seed(options: SeedOptions, inputs: Inputs, config: Config) -> None:
    """A finished seed of another agent or other questions: told before anything is spent."""
    path = options.out / SEED
    if options.force or not path.exists():
        return
    info = read_json(path, SeedInfo, "restore it, or name another folder")
    for what, there, asked in (
        ("agent", info.agent, agent_of(config)),
        (
            "questions",
            info.dataset_fingerprint[:8],
            dataset_fingerprint(inputs.dataset.questions)[:8],
        ),
    ):
        if there != asked:
            raise SeedError(
                path,
                f"is a finished seed with other {what}: {there}; asked for: {asked}",
                "name another folder, or repeat with --force to replace it",
            )


def _refuse_other_baseline(options: SeedOptions) -> None:
    """Before anything is spent; the work folder's own baseline is no other one."""
    there, own = options.out / BASELINE, options.work / BASELINE
    if options.force or not there.exists():
        return
    if not own.exists() or own.read_bytes() != there.read_bytes():
        finished = (options.out / SEED).exists()
        on = "finish it with `bin/trm seed`, no --from-scratch"
        way = "name another folder" if finished else on
        remedy = f"{way}, or repeat with --force to replace it"
        raise SeedError(there, "is there already", remedy)


def _refuse_incomplete(options: SeedOptions, found: BaselinePass, asked: int) -> None:
    """Missing is never wrong: everything has an outcome, or somebody said what may lack it."""
    missed = {missed.question_id: missed for missed in found.missed}
    answered = sorted(options.without - missed.keys())
    if answered:
        names = named_ids(answered)
        raise OptionError(f"--without names questions that are not missing: {names}")
    undecided = [entry for name, entry in missed.items() if name not in options.without]
    if undecided:
        lines = _some([f"{e.question_id}: {e.kind}: {e.detail}" for e in undecided])
        raise PassIncomplete(
            f"{len(undecided)} of {asked} questions have no outcome (an outage is no wrong "
            f"answer):\n{lines}\nStart again: only these are asked. Or go on without them, if they "
            f"are test questions: --without {named_ids(sorted(missed))}",
            lasting=all(entry.lasting for entry in undecided),
        )
    if found.undiagnosed:
        raise PassIncomplete(
            f"{len(found.undiagnosed)} wrong answers have no diagnosis:\n"
            f"{_some(found.undiagnosed)}\nStart again: only these are asked.",
            lasting=False,
        )


def _some(lines: Sequence[str]) -> str:
    more = [f"  ... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([*(f"  {line}" for line in lines[:_SHOWN]), *more])
