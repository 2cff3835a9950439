"""What the data of a fresh run must allow, looked at before anything is written."""

from __future__ import annotations

from pathlib import Path

from actors.config import ConfigError
from actors.dataset.pools import FrozenData
from actors.dataset.preflight import preflight, trainable_only
from actors.dataset.units import make_units
from actors.evolver.document import validate
from actors.gate.factorial.schedule import ScheduleError
from actors.gate.phase import schedule_of
from actors.workspace.versions import read_skills
from protocol.settings import Config

__all__ = ["check_data", "check_skills"]


def check_data(config: Config, frozen: FrozenData) -> None:
    """Pre-flight must leave something to train (row P0-3)."""
    classes = preflight(
        frozen.diag,
        frozen.val,
        frozen.test,
        eval_min_per_class=config.data.eval_min_per_class,
        trainable_min_units=config.data.trainable_min_units,
    )
    if not any(row.trainable for row in classes):
        shown = [f"  {row.task_type}: {row.reason}" for row in classes]
        raise ConfigError(["pre-flight leaves no class to train:", *shown])
    if config.gate.design == "factorial":
        try:
            units = make_units(trainable_only(frozen.diag, classes))
            schedule_of(config.gate, config.run.seed, config.trainer.epochs, units)
        except ScheduleError as error:
            raise ConfigError([str(error)]) from error


def check_skills(seed: Path, version: str) -> None:
    """A damaged document could never be edited: its class would silently not train."""
    problems = [
        f"{seed / 'skills' / version}: {skill.task_type}: {problem}"
        for skill in read_skills(seed / "skills", version)
        for problem in validate(skill.text)
    ]
    if problems:
        raise ConfigError(problems)
