"""Options that the commands about seeds share, and what they name, read.

Only what the parsers need is imported with this module, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from actors.places import as_called

if TYPE_CHECKING:
    from actors.dataset.questions import Dataset
    from protocol.seed import SplitParameters
    from protocol.settings import Config

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "RESUMABLE",
    "USAGE",
    "Inputs",
    "OptionError",
    "add_data_options",
    "add_split_options",
    "assumed_config",
    "named_ids",
    "note",
    "parameters_of",
    "read_inputs",
    "split_asked_for",
    "work_folder",
    "write",
]

DONE, FAILED, USAGE, RESUMABLE, INTERRUPTED = 0, 1, 2, 75, 130

_MOST_NAMED = 10
_PARAMETERS = ("n_trainval", "n_test", "val_ratio", "val_wrong_min")


class OptionError(ValueError):
    """An option cannot be used; the message says which and what to do."""


@dataclass(frozen=True)
class Inputs:
    """What the options name. questions_path and exclude_path: as they were found."""

    config: Config
    config_path: Path | None
    dataset: Dataset
    questions_path: Path
    exclude_path: Path | None


def add_data_options(parser: argparse.ArgumentParser, *, config: bool = True) -> None:
    """``--questions``, ``--exclude``, and with ``config`` also ``--config`` and ``--set``."""
    group = parser.add_argument_group("questions")
    group.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="the questions (default: data.questions of --config)",
    )
    group.add_argument(
        "--exclude",
        type=Path,
        metavar="FILE",
        help="question ids to leave out, one a line (default: data.exclude of --config, where its "
        "questions are taken)",
    )
    if config:
        group.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help="a run's configuration: its questions, and the thresholds that the report uses",
        )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="assignments",
        help="override one key of the configuration; may be given several times",
    )


def add_split_options(parser: argparse.ArgumentParser) -> None:
    """The parameters of a split."""
    group = parser.add_argument_group(
        "split",
        "What is not given is as --config names it, else as in the split that is there.",
    )
    group.add_argument(
        "--n-trainval", type=_count, metavar="N", help="videos to train on (default: 100)"
    )
    group.add_argument(
        "--n-test", type=_count, metavar="N", help="videos that training never sees (default: 200)"
    )
    group.add_argument(
        "--val-ratio",
        type=_ratio,
        metavar="X",
        help="share of trainval's questions that go to val (default: 0.4)",
    )
    group.add_argument(
        "--val-wrong-min",
        type=_count,
        metavar="N",
        help="questions answered wrong in the baseline that val must hold (default: 20)",
    )
    group.add_argument(
        "--seed",
        type=_count,
        metavar="N",
        help="of the draw of trainval and test (default: run.seed of the configuration)",
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 2**63):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, 0 or more")
    return int(text)


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be between 0 and 1, such as 0.4")
    return value


def split_asked_for(arguments: argparse.Namespace) -> bool:
    """Whether any parameter of a split was given."""
    return any(getattr(arguments, name) is not None for name in (*_PARAMETERS, "seed"))


def parameters_of(
    arguments: argparse.Namespace, inputs: Inputs, before: SplitParameters | None
) -> SplitParameters:
    """The parameters: as given, else as --config names them, else of the split that is there."""
    from actors.config import named_keys
    from protocol.seed import SplitParameters

    config = inputs.config
    configured: dict[str, object] = {name: getattr(config.split, name) for name in _PARAMETERS}
    configured["seed"] = config.run.seed
    named = named_keys(inputs.config_path, arguments.assignments)
    values = configured | {
        name: getattr(before, name)
        for name in configured
        if before is not None and ("run.seed" if name == "seed" else f"split.{name}") not in named
    }
    given = {name: getattr(arguments, name) for name in values}
    values |= {name: value for name, value in given.items() if value is not None}
    return SplitParameters(**values)  # type: ignore[arg-type]  # checked by the options


def read_inputs(arguments: argparse.Namespace, config_path: Path | None) -> Inputs:
    """Configuration and questions.

    Raises OptionError if nothing names the questions, ConfigError, QuestionsError.
    """
    from actors.config import load_config, resolve_path
    from actors.dataset.questions import load_dataset

    config = load_config(config_path, arguments.assignments)
    questions, exclude = arguments.questions, arguments.exclude
    named = any(text.startswith("data.questions=") for text in arguments.assignments)
    if questions is None:
        if config_path is None and not named:
            raise OptionError("which questions? Give --questions FILE, or --config FILE")
        questions = resolve_path(config.data.questions, config_path)
        if exclude is None and config.data.exclude is not None:
            exclude = resolve_path(config.data.exclude, config_path)
    return Inputs(
        config=config,
        config_path=config_path,
        dataset=load_dataset(questions, exclude, duration=config.data.duration),
        questions_path=questions.resolve(),
        exclude_path=None if exclude is None else exclude.resolve(),
    )


def assumed_config(inputs: Inputs, assignments: Sequence[str]) -> str | None:
    """Whose epochs and thresholds the report uses, in words; None: those of the file named."""
    if inputs.config_path is not None:
        return None
    also = f" with --set {' --set '.join(assignments)}" if assignments else ""
    return (
        f"No --config: epochs, thresholds, the gate and what of the split was not given are as in "
        f"config/default.yaml{also}."
    )


def named_ids(ids: Sequence[str]) -> str:
    """Ids as ``--without`` takes them: all of a few; of many the first, and how many they are."""
    if len(ids) <= _MOST_NAMED:
        return ",".join(ids)
    return f"{','.join(ids[:_MOST_NAMED])},... ({len(ids)} in all)"


def work_folder(given: Path | None, target: Path) -> Path:
    """Where what was answered is kept while ``target`` is made: ``<target>.work`` beside it."""
    return given if given is not None else target.with_name(f"{target.name}.work")


def write(text: str) -> None:
    """On stdout, in UTF-8 whatever the locale says. Raises StdoutLost, which ``main`` tells."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    """On stderr; nobody may listen any more."""
    with suppress(OSError, ValueError):
        sys.stderr.write(as_called(text).rstrip("\n") + "\n")
        sys.stderr.flush()
