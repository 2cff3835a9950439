"""``bin/trm seed``: make the folder that training starts from.

Only what the parser needs is imported with this module: ``--help`` and usage errors are quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import (
    DONE,
    FAILED,
    INTERRUPTED,
    RESUMABLE,
    USAGE,
    OptionError,
    add_data_options,
    add_split_options,
    assumed_config,
    note,
    parameters_of,
    read_inputs,
    split_asked_for,
    work_folder,
    write,
)
from actors.places import shown_path

if TYPE_CHECKING:
    from actors.commands.seed_making import Made, SeedOptions
    from actors.commands.seed_options import Inputs

__all__ = ["add_seed_parser", "seed"]

_SHOWN = 10

_DESCRIPTION = """\
Makes a seed: a folder with seed.json, baseline.db (what an agent answered, and why it was wrong),
pools.json and split_manifest.json (the frozen split), skills/v1 and prompts/v1. It holds no path
and no question, so it may be moved; whatever it says of itself is verified whenever it is opened.

The baseline comes from answers that are there (--from-db), from a pass that is made now
(--from-scratch), or from OUT/baseline.db. A source is only read. An answer that an outage lost is
never taken for a wrong one: it is named, and you decide."""

_EXAMPLES = """\
a seed from the older program's answers, in four steps (or leave out --baseline-only and do it
in one, without diagnoses):
  bin/trm seed seeds/mine --from-db harness.db --from-run infer_adhoc --dedupe \\
      --questions videomme.json --baseline-only
  bin/trm diagnose seeds/mine --traces harness.db --config my.yaml --skills skills --questions ...
  bin/trm split --seed-folder seeds/mine --questions videomme.json    (first with --dry-run)
  bin/trm seed seeds/mine --questions videomme.json --skills skills --prompts prompts \\
      --agent "TRM5 with deepseek-v4-pro" --subtitles yes

more examples:
  bin/trm seed seeds/mine --from-scratch my.yaml --skills skills --prompts prompts
      one pass of the configured agent over data.questions; Ctrl-C stops it in order, and the same
      command goes on from what is in seeds/mine.work
  bin/trm seed seeds/again --from-db seeds/mine/baseline.db --questions q.json --val-ratio 0.5
      the same answers, split otherwise; agent and documents are taken from seeds/mine
  bin/trm seed seeds/two --from-db seeds/mine.work/run.db --from-run baseline/seed ...
      the answers of a pass, as its run.db has them

whose answers: a run takes the baseline as its own first draw only if seed.json names exactly its
own agent. --agent TEXT is recorded as "foreign: TEXT", which no run's agent ever is: then every run
draws its own baseline and the answers serve for the split alone. Answers of a run.db are recorded
as this agent's only if they were made under the seed's documents.

exit codes: 0 done, 1 failed, 2 the arguments or the data cannot be used (nothing is written then),
75 stopped or incomplete: start again to go on, 130 stopped at once by a second signal"""


def add_seed_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``seed`` and its options."""
    parser = commands.add_parser(
        "seed",
        prog="bin/trm seed",
        help="make the folder that training starts from",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="the seed's folder")
    _add_source(parser)
    add_data_options(parser)
    _add_parts(parser)
    add_split_options(parser)
    how = parser.add_argument_group("how")
    how.add_argument(
        "--baseline-only",
        action="store_true",
        help="make OUT/baseline.db and stop: to diagnose and split before the seed is finished",
    )
    how.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="where a pass keeps what was answered (default: OUT.work beside OUT)",
    )
    how.add_argument(
        "--force",
        action="store_true",
        help="replace another split and another baseline; the old ones are kept as *.bak.*",
    )
    how.add_argument("--json", action="store_true", help="the report as one JSON object")
    parser.set_defaults(run=seed)


def _add_source(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where the baseline comes from")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--from-db",
        type=Path,
        metavar="FILE",
        help="a harness.db of the older program, a run.db, or a baseline.db of a seed",
    )
    which.add_argument(
        "--from-scratch",
        type=Path,
        metavar="CONFIG",
        help="answer every question now, with the endpoints of this configuration",
    )
    group.add_argument(
        "--from-run",
        metavar="RUN",
        help="which run (in a run.db: the run_key of a pass); without it a single one is taken, "
        "and several are listed",
    )
    group.add_argument(
        "--dedupe",
        action="store_true",
        help="keep the first row of each question (with an outcome); the others are listed",
    )
    group.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="IDS",
        help="questions that may lack an outcome, separated by commas; each must be named, and "
        "only test questions may",
    )


def _add_parts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the seed says and holds")
    group.add_argument("--name", help="its name (default: that of the folder)")
    group.add_argument(
        "--run-id", metavar="ID", help="name of the baseline (default: that of the run)"
    )
    group.add_argument("--skills", type=Path, metavar="DIR", help="Markdown that becomes skills/v1")
    group.add_argument(
        "--prompts", type=Path, metavar="DIR", help="Markdown that becomes prompts/v1"
    )
    who = group.add_mutually_exclusive_group()
    who.add_argument("--agent", metavar="TEXT", help="who answered, if no run of this program did")
    who.add_argument(
        "--agent-of", type=Path, metavar="CONFIG", help="the agent of this configuration answered"
    )
    group.add_argument(
        "--subtitles",
        choices=("yes", "no"),
        help="whether the video trees had subtitles (default: as the source's seed says, or as "
        "the trees of a pass are)",
    )
    group.add_argument(
        "--pools", type=Path, metavar="DIR", help="a split that `bin/trm split` made, as it is"
    )


def seed(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.commands.seed_scratch import PassIncomplete
    from actors.commands.seeding import Stopped
    from actors.config import ConfigError
    from actors.dataset.errors import DataError, MissingOutcomeError, SplitError
    from actors.runtime.errors import AskFailed, SystemFailed
    from actors.workspace.errors import WorkspaceError

    try:
        return _seed(arguments)
    except (
        OptionError,
        ConfigError,
        DataError,
        SplitError,
        MissingOutcomeError,
        WorkspaceError,
        OSError,
    ) as error:
        note(f"bin/trm seed: {error}")
        return USAGE
    except PassIncomplete as incomplete:
        note(f"bin/trm seed: {incomplete}")
        return FAILED if incomplete.lasting else RESUMABLE
    except Stopped as stopped:
        note(
            f"Stopped {'at once' if stopped.at_once else 'in order'}; what was answered lies in "
            f"{work_folder(arguments.work, arguments.out)}. The same command goes on from there."
        )
        return INTERRUPTED if stopped.at_once else RESUMABLE
    except (SystemFailed, AskFailed) as error:
        note(f"bin/trm seed: {error}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _seed(arguments: argparse.Namespace) -> int:
    from actors.commands.seed_making import from_answers
    from actors.commands.seed_scratch import from_scratch
    from actors.commands.split_report import nothing_trains

    scratch = arguments.from_scratch is not None
    _refuse_pairs(arguments, scratch)
    inputs = read_inputs(arguments, arguments.from_scratch if scratch else arguments.config)
    options = _options(arguments, inputs)
    made = from_scratch(options, inputs) if scratch else from_answers(options, inputs)
    _tell(arguments, made, inputs)
    if scratch:
        note(_kept(work_folder(arguments.work, arguments.out)))
    nothing = None if made.split is None else nothing_trains(made.split.facts, inputs.config)
    if nothing is not None:
        note(nothing)
    return DONE


def _refuse_pairs(arguments: argparse.Namespace, scratch: bool) -> None:
    """Options that say nothing together."""
    if scratch and arguments.config is not None:
        raise OptionError("--from-scratch names the configuration; --config is for the other ways")
    pairs = [
        ("--from-run", arguments.from_run is not None and arguments.from_db is None),
        ("--dedupe", arguments.dedupe and arguments.from_db is None),
    ]
    for name, alone in pairs:
        if alone:
            raise OptionError(f"{name} goes with --from-db")
    if scratch and (arguments.agent is not None or arguments.agent_of is not None):
        raise OptionError("--from-scratch answers with the agent of its configuration")
    if (arguments.out / "manifest.json").exists():
        raise OptionError(f"{arguments.out}: is a workspace; name a folder for the seed")


def _options(arguments: argparse.Namespace, inputs: Inputs) -> SeedOptions:
    from actors.commands.seed_making import SeedOptions

    out: Path = arguments.out.resolve()
    named = [part.strip() for text in arguments.without for part in text.split(",")]
    return SeedOptions(
        out=out,
        name=arguments.name or out.name,
        from_db=arguments.from_db,
        from_run=arguments.from_run,
        dedupe=arguments.dedupe,
        without=frozenset(part for part in named if part),
        baseline_only=arguments.baseline_only,
        run_id=arguments.run_id,
        skills=arguments.skills,
        prompts=arguments.prompts,
        agent=arguments.agent,
        agent_of=arguments.agent_of,
        subtitles=None if arguments.subtitles is None else arguments.subtitles == "yes",
        pools=arguments.pools,
        split_asked_for=split_asked_for(arguments),
        parameters=lambda before: parameters_of(arguments, inputs, before),
        work=work_folder(arguments.work, out).resolve(),
        force=arguments.force,
        say=note,
    )


# -- telling ----------------------------------------------------------------------------


def _tell(arguments: argparse.Namespace, made: Made, inputs: Inputs) -> None:
    import msgspec

    from actors.commands.html.words import count
    from actors.commands.split_report import render_split

    extracted = made.extracted
    assumed = assumed_config(inputs, arguments.assignments)
    if made.split is not None and assumed is not None:
        note(assumed)
    if arguments.json:
        told: dict[str, object] = {
            "folder": str(made.folder),
            "baseline_run_id": made.run_id,
            "predictions": made.predictions,
            "diagnoses": made.diagnoses,
            "dropped": [] if extracted is None else list(extracted.dropped),
            "without": [] if extracted is None else [str(e) for e in extracted.without],
            "unknown": [] if extracted is None else list(extracted.unknown),
            "differing": [] if extracted is None else list(extracted.differing),
            "seed": None if made.info is None else msgspec.to_builtins(made.info),
            "split": None if made.split is None else msgspec.to_builtins(made.split.facts),
        }
        write(msgspec.json.encode(told).decode() + "\n")
        return
    if extracted is not None:
        _list("rows that another row of the same question stands for", extracted.dropped)
        _list("questions go without an outcome", [str(entry) for entry in extracted.without])
        _list("answers are of questions that are not among these", extracted.unknown)
        _list("rows name class or video otherwise than the questions do", extracted.differing)
    if made.split is not None:
        write(render_split(made.split, inputs.config))
    counts = (
        f"{count(made.predictions, 'answer')}, {count(made.diagnoses, 'diagnosis', 'diagnoses')}, "
        f"run {made.run_id}"
    )
    if made.info is None:
        note(f"Made {made.folder / 'baseline.db'}: {counts}. Not a seed yet: next are")
        note(f"  bin/trm diagnose {arguments.out} ...   (each with --help)")
        note(f"  bin/trm split --seed-folder {arguments.out} ...")
        note(f"  bin/trm seed {arguments.out} ...")
        return
    note(f"Made the seed {made.folder}: {counts}.\nAnswered by: {made.info.agent}")


def _kept(work: Path) -> str:
    """What the work folder is, and that it is no part of the seed."""
    place = shown_path(work)
    return (
        f"{place} keeps the calls that were answered: the same command asks none of them again, "
        f"and `--from-db {shown_path(work / 'run.db')}` makes other seeds of them. The seed does "
        "not need it; it may be deleted."
    )


def _list(what: str, lines: Sequence[str]) -> None:
    if lines:
        note(f"{len(lines)} {what}:")
        for line in lines[:_SHOWN]:
            note(f"  {line}")
        if len(lines) > _SHOWN:
            note(f"  ... and {len(lines) - _SHOWN} more (all of them with --json)")
