"""``bin/trm diagnose``: have a baseline's wrong answers judged, before the split is made.

Only what the parser needs is imported with this module: ``--help`` and usage errors are quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
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
    note,
    read_inputs,
    write,
)

if TYPE_CHECKING:
    from actors.commands.diagnose_files import Places, Rows
    from actors.commands.diagnosing import Case, Judged
    from actors.commands.seed_options import Inputs
    from protocol.seed import BaselineDiagnosis
    from protocol.settings import Config

__all__ = ["add_diagnose_parser", "diagnose"]

_SHOWN = 10

_DESCRIPTION = """\
Asks the judge of a configuration why the wrong answers of a baseline are wrong: a skill defect
(T2, what training can mend), a lapse (T1), or uncertain. The split then keeps skill defects in
diag. Only wrong answers without a diagnosis are asked about; a diagnosis belongs to a question by
its fingerprint (wording, options and gold), and one that is stored is not asked again.

The verdicts are stored in one batch at the end of the run, also of one that a signal stopped. What
a killed run had asked lies in the cache of the work folder, so that the next one asks only for the
rest. A judge that could not be reached has said nothing: nothing is stored, and the next run asks.

The baseline of a finished seed is never written. Diagnose before `bin/trm seed` finishes it, or
write a copy with --out and make a new seed of that."""

_EXAMPLES = """\
examples:
  bin/trm diagnose seeds/mine --traces harness.db --config my.yaml --skills skills
      a seed under construction whose answers are the older program's (steps_json)
  bin/trm diagnose seeds/mine --traces seeds/mine.work/run.db --config my.yaml
      the answers of a pass of this program
  bin/trm diagnose seeds/mine ... --retry-uncertain
      asks again where the judge was uncertain or could not be read; no other verdict changes
  bin/trm diagnose seeds/done/baseline.db --out again.db --traces ... --config my.yaml
      the baseline of a finished seed: into a copy

exit codes: 0 done, 1 failed, 2 the arguments or the data cannot be used (nothing is asked then),
75 stopped or incomplete: start again to go on, 130 stopped at once by a second signal"""


def add_diagnose_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``diagnose`` and its options."""
    parser = commands.add_parser(
        "diagnose",
        prog="bin/trm diagnose",
        help="have a baseline's wrong answers judged",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target",
        type=Path,
        metavar="PATH",
        help="a seed under construction (its baseline.db), or a baseline.db",
    )
    parser.add_argument(
        "--config",
        type=Path,
        required=True,
        metavar="FILE",
        help="whose judge is asked; also names the questions",
    )
    add_data_options(parser, config=False)
    group = parser.add_argument_group("the answers")
    group.add_argument(
        "--traces",
        type=Path,
        metavar="FILE",
        help="the harness.db or run.db with the steps of the answers (default: run.db of the work "
        "folder)",
    )
    group.add_argument(
        "--traces-run",
        metavar="RUN",
        help="which run of it (default: the baseline's run id)",
    )
    group.add_argument(
        "--skills",
        type=Path,
        metavar="DIR",
        help="the skills that the answers were made under (default: PATH/skills/v1)",
    )
    group.add_argument(
        "--allow-untraced",
        action="store_true",
        help="leave out answers without stored steps (they stay without a diagnosis)",
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--retry-uncertain",
        action="store_true",
        help="also ask again where the verdict is uncertain or the reply could not be read",
    )
    how.add_argument(
        "--out", type=Path, metavar="FILE", help="write there instead; the source is only read"
    )
    how.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="where what was asked is kept (default: PATH.work beside PATH)",
    )
    how.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.set_defaults(run=diagnose)


def diagnose(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.config import ConfigError
    from actors.dataset.errors import DataError, SplitError
    from actors.runtime.errors import AskFailed, SystemFailed
    from actors.workspace.errors import WorkspaceError

    try:
        return _diagnose(arguments)
    except (OptionError, ConfigError, DataError, SplitError, WorkspaceError, OSError) as error:
        note(f"bin/trm diagnose: {error}")
        return USAGE
    except (SystemFailed, AskFailed) as error:
        note(f"bin/trm diagnose: {error}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _diagnose(arguments: argparse.Namespace) -> int:
    from actors.commands.diagnose_files import (
        cases_of,
        end_round,
        places_of,
        read_rows,
        store,
        traces_of,
    )
    from actors.commands.diagnosing import choose_wrong
    from actors.commands.seed_scratch import with_cache
    from actors.launch import check_surroundings
    from actors.workspace.lock import WorkspaceLock

    places = places_of(arguments)
    inputs = read_inputs(arguments, arguments.config)
    rows = read_rows(places)
    wanted, again = choose_wrong(
        inputs.dataset.questions,
        rows.predictions,
        rows.diagnoses,
        retry_uncertain=arguments.retry_uncertain,
    )
    if not wanted:
        return _tell(arguments, places, inputs, rows, store(places, rows, ()), None, ())
    config = with_cache(inputs.config)
    check_surroundings(config)
    places.work.mkdir(parents=True, exist_ok=True)
    with WorkspaceLock(places.work):
        cases, lacking = cases_of(arguments, places, inputs, rows, wanted, again)
        config = _as_answered(config, traces_of(arguments, places))
        judged = _ask(places, inputs, config, cases, retrying=bool(again))
        stored = store(places, rows, judged.diagnoses)
        if again and not judged.stopped:
            end_round(places.work)
    return _tell(arguments, places, inputs, rows, stored, judged, lacking)


def _as_answered(config: Config, traces: Path) -> Config:
    """The older program's agent chose no skill: it had the one that --skills names."""
    import msgspec

    from actors.workspace.harness_db import kind_of

    if kind_of(traces) != "harness":
        return config
    agent = msgspec.structs.replace(config.agent, skill_routing="oracle")
    return msgspec.structs.replace(config, agent=agent)


def _ask(
    places: Places, inputs: Inputs, config: Config, cases: Sequence[Case], *, retrying: bool
) -> Judged:
    """Start the judge's actors and ask. Logs go to the work folder too."""
    import anyio

    from actors.commands.diagnose_files import rounds
    from actors.commands.diagnosing import diagnose_cases
    from actors.config import ConfigError, resolve_path
    from actors.logs import configure_logs
    from actors.system import Paths, uses_twin

    world = resolve_path(config.twin.world, inputs.config_path) if uses_twin(config) else None
    trees = places.work  # the judge reads what the agent saw, not the trees
    with suppress(ConfigError):
        trees = resolve_path(config.data.trees, inputs.config_path)
    paths = Paths(
        workspace=places.work.resolve(),
        questions=inputs.questions_path,
        trees=trees,
        world=world,
        exclude=inputs.exclude_path,
    )
    salt = f"retry/{rounds(places.work) + 1}"
    note(f"Asking about {len(cases)} wrong answers" + (f" ({salt})" if retrying else "") + ".")

    async def ask() -> Judged:
        return await diagnose_cases(config, paths, cases, salt=salt, say=note)

    (places.work / "logs").mkdir(exist_ok=True)
    file = configure_logs(places.work / "logs" / "diagnose.jsonl", config.run.log_level, "diagnose")
    assert file is not None, "a path was given"
    try:
        return anyio.run(ask)
    finally:
        configure_logs(None, "warning", None)
        file.close()


# -- telling ----------------------------------------------------------------------------


def _tell(
    arguments: argparse.Namespace,
    places: Places,
    inputs: Inputs,
    rows: Rows,
    stored: Sequence[BaselineDiagnosis],
    judged: Judged | None,
    lacking: Sequence[str],
) -> int:
    """Say what the file holds now; returns the exit code."""
    import msgspec

    from actors.dataset.tiers import tiered_outcomes

    tiered = tiered_outcomes(inputs.dataset.questions, rows.predictions, stored)
    wrong = [outcome for outcome in tiered.outcomes if not outcome.right]
    tiers = [outcome.tier for outcome in wrong]
    silent = () if judged is None else judged.silent
    told: dict[str, object] = {
        "file": str(places.out),
        "baseline_run_id": rows.run_id,
        "wrong": len(wrong),
        "asked": 0 if judged is None else len(judged.diagnoses) + len(judged.silent),
        "t2": tiers.count(2),
        "t1": tiers.count(1),
        "t0": tiers.count(0),
        "undiagnosed": list(tiered.undiagnosed),
        "degraded": sum(outcome.degraded for outcome in wrong),
        "stray_diagnoses": list(tiered.stray_diagnoses),
        "silent": list(silent),
        "untraced": list(lacking),
        "stopped": judged is not None and judged.stopped,
    }
    if arguments.json:
        write(msgspec.json.encode(told).decode() + "\n")
    else:
        write(
            f"{places.out}: {len(wrong)} wrong answers of {rows.run_id}: {told['t2']} skill "
            f"defects (T2), {told['t1']} lapses (T1), {told['t0']} T0, of which "
            f"{len(tiered.undiagnosed)} without a diagnosis.\n"
        )
    for lines in (silent, lacking):
        for line in lines[:_SHOWN]:
            note(f"  {line}")
        if len(lines) > _SHOWN:
            note(f"  ... and {len(lines) - _SHOWN} more (all of them with --json)")
    if judged is not None and judged.stopped:
        how = "at once" if judged.at_once else "in order"
        note(f"Stopped {how}; what was judged is stored. The same command goes on from there.")
        return INTERRUPTED if judged.at_once else RESUMABLE
    if silent:
        note(f"About {len(silent)} answers the judge said nothing; the same command asks again.")
        return RESUMABLE
    return DONE
