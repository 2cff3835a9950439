"""``bin/trm split``: freeze which videos train, which decide, which are never seen.

Costs no model call: the baseline's answers and their diagnoses lie in baseline.db.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import (
    DONE,
    INTERRUPTED,
    USAGE,
    OptionError,
    add_data_options,
    add_split_options,
    assumed_config,
    note,
    parameters_of,
    read_inputs,
    write,
)

if TYPE_CHECKING:
    from actors.commands.splitting import Split
    from protocol.seed import SplitParameters
    from protocol.settings import Config

__all__ = ["add_split_parser", "split"]

_DESCRIPTION = """\
Splits questions into diag (trained on), val (decides on packages) and test (never seen), whole
videos at a time, and freezes that as pools.json and split_manifest.json. Trainval and test are
drawn blind, stratified by sub-category; inside trainval, videos whose wrong answers show a skill
defect go to diag, and val gets wrong answers enough to tell packages apart.

It reads the answers and diagnoses of a baseline.db and asks no model. The same questions,
baseline and parameters give the same bytes."""

_EXAMPLES = """\
examples:
  bin/trm split --seed-folder seeds/mine --questions videomme.json --dry-run
      what the split would give: wrong answers per pool, classes that would not train, gains
      that val and each class could resolve; writes nothing
  bin/trm split --seed-folder seeds/mine --questions videomme.json --val-ratio 0.4
      freezes it; another split that is frozen there is an error ...
  bin/trm split --seed-folder seeds/mine --questions videomme.json --val-ratio 0.5 --force
      ... unless it may be replaced: it is kept as pools.json.bak.<first 8 of its SHA-256>
  bin/trm split --baseline baseline.db --out pools --config my.yaml --json

exit codes: 0 done, 2 the arguments or the data cannot be used (nothing is written then)"""


def add_split_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``split`` and its options."""
    parser = commands.add_parser(
        "split",
        prog="bin/trm split",
        help="freeze which videos train, which decide, which are never seen",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_argument_group("baseline")
    which = where.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--seed-folder",
        type=Path,
        metavar="DIR",
        help="a seed, or one under construction: its baseline.db; the split goes there",
    )
    which.add_argument("--baseline", type=Path, metavar="DB", help="a baseline.db; with --out")
    where.add_argument("--out", type=Path, metavar="DIR", help="where the split goes")
    add_data_options(parser)
    add_split_options(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--dry-run", action="store_true", help="print the report, write nothing")
    how.add_argument("--force", action="store_true", help="replace another split; it is kept")
    how.add_argument("--json", action="store_true", help="the report as one JSON object")
    parser.set_defaults(run=split)


def split(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.config import ConfigError
    from actors.dataset.errors import DataError, MissingOutcomeError, SplitError
    from actors.workspace.errors import WorkspaceError

    try:
        return _split(arguments)
    except (
        OptionError,
        ConfigError,
        DataError,
        SplitError,
        MissingOutcomeError,
        WorkspaceError,
        OSError,
    ) as error:
        note(f"bin/trm split: {error}")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _split(arguments: argparse.Namespace) -> int:
    from actors.baseline.seed_db import SeedBaselineError, read_diagnoses, read_predictions
    from actors.baseline.seed_db import read_run_id as run_id_of
    from actors.commands.split_report import nothing_trains
    from actors.commands.splitting import make_split
    from actors.workspace.seed import resplit

    database, target = _places(arguments)
    inputs = read_inputs(arguments, arguments.config)
    try:
        run_id = run_id_of(database)
        predictions, diagnoses = read_predictions(database), read_diagnoses(database)
    except (SeedBaselineError, FileNotFoundError) as error:
        raise OptionError(f"{error}; make one with `bin/trm seed --baseline-only`") from error
    parameters = parameters_of(arguments, inputs, _frozen_parameters(target))
    made = make_split(inputs.dataset, run_id, predictions, diagnoses, parameters, inputs.config)
    kept = None
    if target is not None and not arguments.dry_run:
        target.mkdir(exist_ok=True)
        kept = resplit(target, made.pools_json, made.manifest, force=arguments.force)
    _tell(arguments, made, inputs.config, target, kept)
    assumed = assumed_config(inputs, arguments.assignments)
    if assumed is not None:
        note(assumed)
    nothing = nothing_trains(made.facts, inputs.config)
    if nothing is not None:
        note(nothing)
    return DONE


def _places(arguments: argparse.Namespace) -> tuple[Path, Path | None]:
    """The baseline, and where the split goes (None: nowhere, in a dry run)."""
    if arguments.seed_folder is not None:
        folder: Path = arguments.seed_folder
        if arguments.out is not None:
            raise OptionError("--out goes with --baseline; the split goes into --seed-folder")
        if not folder.is_dir():
            raise OptionError(f"--seed-folder {folder}: there is no such folder")
        if (folder / "manifest.json").exists():
            raise OptionError(
                f"--seed-folder {folder}: is a workspace, whose split stays what it is; split its "
                "seed, then begin a fresh run"
            )
        return folder / "baseline.db", folder
    if arguments.out is None and not arguments.dry_run:
        raise OptionError("--baseline needs --out DIR (or --dry-run)")
    if arguments.out is not None and not arguments.out.absolute().parent.is_dir():
        raise OptionError(f"--out {arguments.out}: its folder is not there")
    return arguments.baseline, arguments.out


def _frozen_parameters(target: Path | None) -> SplitParameters | None:
    """Those of the split that is there. Raises BadFile if its manifest cannot be read."""
    from actors.workspace.files import read_json
    from actors.workspace.seed import SPLIT_MANIFEST
    from protocol.seed import SplitManifest

    if target is None or not (target / SPLIT_MANIFEST).exists():
        return None
    remedy = "restore or remove it"
    return read_json(target / SPLIT_MANIFEST, SplitManifest, remedy).parameters


def _tell(
    arguments: argparse.Namespace,
    made: Split,
    config: Config,
    target: Path | None,
    kept: Path | None,
) -> None:
    import msgspec

    from actors.commands.split_report import render_split

    frozen = target is not None and not arguments.dry_run
    if arguments.json:
        told = msgspec.to_builtins(made.facts)
        told["frozen"] = frozen
        told["folder"] = str(target) if frozen else None
        told["kept"] = None if kept is None else kept.name
        write(msgspec.json.encode(told).decode() + "\n")
        return
    write(render_split(made, config))
    if not frozen:
        note("Dry run: nothing was written.")
        return
    if kept is not None:
        note(f"The split that was there is kept as {kept.name}.")
    note(f"Frozen in {target}: pools.json, split_manifest.json.")
