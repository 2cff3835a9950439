"""From answers that are there to a seed, and the end of every way to one (row seed).

Above the rooms. Everything that can be wrong is looked at before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from actors.baseline.seed_db import SeedBaselineError, read_diagnoses, read_predictions
from actors.commands.extraction import Extracted, extract_baseline
from actors.commands.seed_options import Inputs, OptionError
from actors.commands.seed_parts import complete_seed, read_documents
from actors.commands.splitting import TOOL_VERSION, Split, describe, make_split
from actors.config import agent_of, load_config
from actors.dataset.tiers import tiered_outcomes
from actors.workspace.atomic import write_atomic
from actors.workspace.baseline_db import make_baseline_db
from actors.workspace.errors import RowsError, SeedError
from actors.workspace.files import read_bytes, read_json
from actors.workspace.seed import BASELINE, POOLS, SEED, SPLIT_MANIFEST
from actors.workspace.versions import document_files
from protocol.documents import PackageTexts
from protocol.seed import (
    BaselineDiagnosis,
    BaselinePrediction,
    Pools,
    SeedInfo,
    SplitManifest,
    SplitParameters,
)

__all__ = [
    "CONFIG",
    "Baseline",
    "Made",
    "Origin",
    "SeedOptions",
    "documents_of",
    "finish_seed",
    "from_answers",
    "require_skills",
    "write_baseline",
]

CONFIG = "config.yaml"
_DOCUMENTS = (
    "name folders of Markdown with --skills and --prompts, or put them into {out}/skills/v1 and "
    "{out}/prompts/v1"
)
_WHO = (
    "who answered? Give --agent TEXT for another program or another agent, or --agent-of CONFIG "
    "if the answers are those of the agent that CONFIG describes"
)


@dataclass(frozen=True)
class SeedOptions:
    """What ``trm seed`` was told. parameters: of a split, from those of the split that is there.

    work: the work folder. say: takes a line about the progress.
    """

    out: Path
    name: str
    from_db: Path | None
    from_run: str | None
    dedupe: bool
    without: frozenset[str]
    baseline_only: bool
    run_id: str | None
    skills: Path | None
    prompts: Path | None
    agent: str | None
    agent_of: Path | None
    subtitles: bool | None
    pools: Path | None
    split_asked_for: bool
    parameters: Callable[[SplitParameters | None], SplitParameters]
    work: Path
    force: bool
    say: Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """What came of it. split: None if only the baseline was made. info: seed.json likewise."""

    folder: Path
    run_id: str
    predictions: int
    diagnoses: int
    extracted: Extracted | None
    split: Split | None
    info: SeedInfo | None


@dataclass(frozen=True)
class Baseline:
    """Rows that may become a seed's. path: a file that holds exactly these, None: to be made."""

    run_id: str
    predictions: tuple[BaselinePrediction, ...]
    diagnoses: tuple[BaselineDiagnosis, ...]
    path: Path | None


@dataclass(frozen=True)
class Origin:
    """What a source's surroundings say of it; None where they do not."""

    agent: str | None = None
    subtitles: bool | None = None
    skills: Path | None = None
    prompts: Path | None = None


# -- from answers -----------------------------------------------------------------------


def from_answers(options: SeedOptions, inputs: Inputs) -> Made:
    """A seed of the answers in ``options.from_db``, or of the baseline.db in ``options.out``.

    Raises OptionError, SeedError (RowsError with every row at fault), SplitError, DataError,
    VersionError; nothing is written then.
    """
    source = options.from_db or options.out / BASELINE
    if options.from_db is None and not source.exists():
        raise OptionError(
            f"{options.out} holds no baseline.db yet: give --from-db FILE or --from-scratch CONFIG"
        )
    extracted = extract_baseline(
        source,
        options.from_run,
        inputs.dataset,
        dedupe=options.dedupe,
        without=options.without,
    )
    baseline = _baseline_of(options, source, extracted)
    if options.baseline_only:
        write_baseline(options, baseline)
        split = info = None
    else:
        origin = _origin_of(source, extracted.kind)
        skills, prompts = documents_of(options, origin)
        agent = _agent(options, origin, extracted, skills, prompts)
        subtitles = options.subtitles if options.subtitles is not None else origin.subtitles
        if subtitles is None:
            raise OptionError("had the video trees subtitles? Give --subtitles yes or no")
        split, info = finish_seed(options, inputs, baseline, skills, prompts, subtitles, agent)
    return Made(
        folder=options.out,
        run_id=baseline.run_id,
        predictions=len(baseline.predictions),
        diagnoses=len(baseline.diagnoses),
        extracted=extracted,
        split=split,
        info=info,
    )


def _baseline_of(options: SeedOptions, source: Path, extracted: Extracted) -> Baseline:
    """The rows, with the diagnoses that lie in ``out`` already and are of the same answers."""
    run_id = options.run_id or extracted.run_id
    there = options.out / BASELINE
    if source == there:
        if run_id != extracted.run_id:
            what = f"its run id is {extracted.run_id!r}"
            raise OptionError(f"--run-id {run_id}: {there} is made already, {what}")
        rows_there = len(read_predictions(there)) + len(read_diagnoses(there))
        whole = rows_there == len(extracted.predictions) + len(extracted.diagnoses)
        path = there if whole else None
        return Baseline(run_id, extracted.predictions, extracted.diagnoses, path)
    diagnoses = {row.fingerprint: row for row in extracted.diagnoses}
    if there.exists():
        try:
            if tuple(read_predictions(there)) == extracted.predictions:
                answered = {row.question_id for row in extracted.predictions}
                kept = [row for row in read_diagnoses(there) if row.question_id in answered]
                diagnoses = {row.fingerprint: row for row in kept} | diagnoses
        except SeedBaselineError as error:
            if not options.force:
                raise SeedError(there, str(error), "repeat with --force to replace it") from error
    rows = sorted(diagnoses.values(), key=lambda row: (row.question_id, row.fingerprint))
    return Baseline(run_id, extracted.predictions, tuple(rows), None)


def write_baseline(options: SeedOptions, baseline: Baseline) -> None:
    """Put the baseline into ``out``, and nothing else: the seed is under construction.

    Raises SeedError if a finished seed lies there, whose baseline is never written (row P2-2), or
    another baseline does.
    """
    there = options.out / BASELINE
    if (options.out / SEED).exists():
        what = "is a finished seed, whose baseline is never written"
        raise SeedError(options.out, what, "name another folder")
    if there.exists() and not options.force:
        with suppress(SeedBaselineError):
            if tuple(read_predictions(there)) != baseline.predictions:
                what = f"holds another baseline than {baseline.run_id}"
                raise SeedError(there, what, "repeat with --force to replace it")
    options.out.mkdir(parents=True, exist_ok=True)
    if baseline.path != there:
        make_baseline_db(there, baseline.run_id, baseline.predictions, baseline.diagnoses)


def _origin_of(source: Path, kind: str) -> Origin:
    """What lies beside the source: a seed's seed.json, or a run's config.yaml and documents."""
    folder = source.parent
    info = None
    if (folder / SEED).exists():
        info = read_json(folder / SEED, SeedInfo, "restore it from the seed")
    agent = None
    if kind == "run":
        if (folder / CONFIG).exists():
            agent = agent_of(load_config(folder / CONFIG))
    elif kind == "baseline" and info is not None:
        agent = info.agent
    if info is None:
        return Origin(agent=agent)
    return Origin(
        agent=agent,
        subtitles=info.subtitles,
        skills=folder / "skills" / info.skills_version,
        prompts=folder / "prompts" / info.prompts_version,
    )


def documents_of(options: SeedOptions, origin: Origin) -> tuple[Path, Path]:
    """The folders of the documents: as given, else in ``out``, else those beside the source."""
    found = []
    for kind, given, beside in (
        ("skills", options.skills, origin.skills),
        ("prompts", options.prompts, origin.prompts),
    ):
        own = options.out / kind / "v1"
        chosen = given or (own if own.is_dir() else beside)
        if chosen is None:
            raise OptionError(f"which {kind}? " + _DOCUMENTS.format(out=options.out))
        if not chosen.is_dir():
            raise OptionError(f"--{kind} {chosen}: there is no such folder")
        found.append(chosen)
    return found[0], found[1]


def _agent(
    options: SeedOptions, origin: Origin, extracted: Extracted, skills: Path, prompts: Path
) -> str:
    """Who answered, in the words that ``seed_serves`` compares (see ``SeedInfo``).

    Another program's answers, or answers under other documents than the seed's, must never pass
    for the seed package's own draw: only what can be shown to be that is recorded as an agent.
    """
    if options.agent is not None:
        return f"foreign: {options.agent}"
    if extracted.kind == "harness":
        raise OptionError(
            "these are another program's answers: say with --agent TEXT who gave them; they serve "
            "for the split, and every run draws its own baseline"
        )
    agent = origin.agent
    if options.agent_of is not None:
        agent = agent_of(load_config(options.agent_of))
    if agent is None:
        raise OptionError(_WHO)
    if agent.startswith("foreign: "):
        return agent
    _refuse_other_documents(extracted, origin, skills, prompts)
    return agent


def _refuse_other_documents(
    extracted: Extracted, origin: Origin, skills: Path, prompts: Path
) -> None:
    remedy = (
        "give the documents that the answers were made under, or --agent TEXT: then they serve "
        "for the split only"
    )
    texts = read_documents(skills, prompts)
    other = [
        task_type
        for task_type, hashes in sorted(extracted.skills.items())
        if hashes != {_skill_hash(texts, task_type)}
    ]
    if other:
        raise RowsError(skills, "is not what these classes were answered under", remedy, other)
    for given, beside in ((skills, origin.skills), (prompts, origin.prompts)):
        if beside is not None and document_files(given) != document_files(beside):
            raise SeedError(given, f"holds other documents than {beside}", remedy)


def _skill_hash(texts: PackageTexts, task_type: str) -> str:
    try:
        return texts.skill_for(task_type).hash
    except KeyError as error:
        raise OptionError(f"{error.args[0]}: write one, or a _default.md") from error


# -- the end of both ways ---------------------------------------------------------------


def finish_seed(
    options: SeedOptions,
    inputs: Inputs,
    baseline: Baseline,
    skills: Path,
    prompts: Path,
    subtitles: bool,
    agent: str,
) -> tuple[Split, SeedInfo]:
    """Split, or take the frozen split, and seal.

    Raises SplitError, SplitExists and whatever else speaks against it; nothing is written then.
    """
    require_skills(inputs, skills, prompts)
    frozen = _frozen_split(options)
    made = None
    if frozen is None:
        made = make_split(
            inputs.dataset,
            baseline.run_id,
            baseline.predictions,
            baseline.diagnoses,
            options.parameters(_parameters_there(options.out)),
            inputs.config,
        )
        frozen = made.pools_json, made.manifest
    pools_json, manifest = frozen
    with TemporaryDirectory(prefix="trm-baseline-") as scratch:
        path = baseline.path
        if path is None:
            path = Path(scratch) / BASELINE
            make_baseline_db(path, baseline.run_id, baseline.predictions, baseline.diagnoses)
        _settle_baseline(options, path)
        seed = complete_seed(
            options.out,
            options.name,
            run_id=baseline.run_id,
            baseline_db=path,
            pools_json=pools_json,
            manifest=manifest,
            questions=inputs.dataset.questions,
            skills_dir=skills,
            prompts_dir=prompts,
            subtitles=subtitles,
            agent=agent,
            tool_version=TOOL_VERSION,
            force=options.force,
        )
    if made is None:
        tiered = tiered_outcomes(inputs.dataset.questions, baseline.predictions, baseline.diagnoses)
        made = describe(inputs.dataset, tiered, pools_json, manifest, inputs.config)
    return made, seed.info


def require_skills(inputs: Inputs, skills: Path, prompts: Path) -> PackageTexts:
    """The documents, which must have a skill for every class. Raises OptionError, VersionError."""
    texts = read_documents(skills, prompts)
    for task_type in sorted({question.task_type for question in inputs.dataset.questions}):
        _skill_hash(texts, task_type)
    return texts


def _settle_baseline(options: SeedOptions, path: Path) -> None:
    """Of a seed under construction, the same answers with more diagnoses are no other baseline."""
    there = options.out / BASELINE
    if (options.out / SEED).exists() or not there.exists() or there == path:
        return
    with suppress(SeedBaselineError):
        if read_predictions(there) == read_predictions(path):
            write_atomic(there, path.read_bytes())


def _frozen_split(options: SeedOptions) -> tuple[bytes, SplitManifest] | None:
    """The split that is to be used as it is; None: one is to be made."""
    if options.pools is not None:
        if options.split_asked_for:
            raise OptionError("--pools is a split that is made already: it takes no parameters")
        folder = options.pools
    elif options.split_asked_for or not (options.out / POOLS).exists():
        return None
    else:
        folder = options.out
    remedy = "make it with `bin/trm split`"
    read_json(folder / POOLS, Pools, remedy)
    return (
        read_bytes(folder / POOLS, remedy),
        read_json(folder / SPLIT_MANIFEST, SplitManifest, remedy),
    )


def _parameters_there(folder: Path) -> SplitParameters | None:
    if not (folder / SPLIT_MANIFEST).exists():
        return None
    return read_json(folder / SPLIT_MANIFEST, SplitManifest, "remove it").parameters
