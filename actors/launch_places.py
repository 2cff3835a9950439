"""The files that a configuration names, and all that is wrong with them and it, in one error.

Reads only. A person mends the configuration first, then the files that are not there, then what
stands in them; that is the order in which it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from actors.config import ROOT, ConfigError, leaves_of, resolve_path
from actors.dataset.errors import DataError
from actors.system import uses_twin
from actors.workspace.errors import WorkspaceError
from protocol.settings import Config

__all__ = ["Findings", "made_by", "places_of", "places_of_broken", "with_places"]

T = TypeVar("T")
_KEYS = ("data.seed", "data.questions", "data.exclude", "data.trees")
_WORLD = "twin.world"
_MADE_BY = {
    "data.seed": "make a seed with `bin/trm seed DIR --from-scratch CONFIG`",
    "data.trees": "make a tree per video with `bin/trm tree VIDEO --out DIR`",
}


class Findings:
    """What was found to be wrong so far; every check is made, whatever the others found."""

    def __init__(self) -> None:
        self._errors: list[Exception] = []

    def attempt(self, look: Callable[[], T]) -> T | None:
        """What ``look`` finds; None after its trouble was kept."""
        try:
            return look()
        except (ConfigError, WorkspaceError, DataError, OSError) as error:
            self._errors.append(error)
        return None

    def add(self, problems: Sequence[str]) -> None:
        """Keep lines that somebody else has found."""
        if problems:
            self._errors.append(ConfigError(problems))

    def stop(self) -> None:
        """Raise what was found: the one error as it is, several as one with a line each."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            lines = [line for error in self._errors for line in str(error).split("\n")]
            told = "several things are wrong; mend them from the top:"
            raise ConfigError([told, *(f"  {line}" for line in lines)])


def places_of(config: Config, source: Path) -> tuple[dict[str, Path], list[str]]:
    """The files by the last part of their key, and a line for each that is not there."""
    data = config.data
    wanted = dict(zip(_KEYS, (data.seed, data.questions, data.exclude, data.trees), strict=True))
    return _found(wanted | {_WORLD: config.twin.world if uses_twin(config) else None}, source)


def places_of_broken(source: Path, assignments: Sequence[str]) -> tuple[dict[str, Path], list[str]]:
    """The same of a configuration with problems, as far as it names files."""
    try:
        values = leaves_of(source, assignments)
    except ConfigError:
        return {}, []  # not even that can be read, which was told
    wanted = {key: text for key in _KEYS if isinstance(text := values.get(key), str)}
    return _found(wanted, source)


def _found(wanted: Mapping[str, str | None], source: Path) -> tuple[dict[str, Path], list[str]]:
    places: dict[str, Path] = {}
    problems: list[str] = []
    for key, text in wanted.items():
        if text is None:
            continue
        try:
            places[key.partition(".")[2]] = resolve_path(text, source)
        except ConfigError as error:
            made = f"; mend the path, or {made_by(key)}" if made_by(key) else ""
            problems += [f"{key}: {problem}{made}" for problem in error.problems]
    return places, problems


def made_by(key: str) -> str:
    """How one makes what a key should name; empty: no command does."""
    return _MADE_BY.get(key, "")


def with_places(config: Config, places: Mapping[str, Path]) -> Config:
    """The configuration with paths that hold from anywhere. places: all that it names."""
    texts = {name: _portable(place) for name, place in places.items()}
    data = msgspec.structs.replace(
        config.data,
        seed=texts["seed"],
        questions=texts["questions"],
        exclude=texts.get("exclude"),
        trees=texts["trees"],
    )
    twin = msgspec.structs.replace(config.twin, world=texts.get("world", config.twin.world))
    return msgspec.structs.replace(config, data=data, twin=twin)


def _portable(place: Path) -> str:
    """Relative if it came with the program, so that that may move; absolute elsewhere."""
    with suppress(ValueError):
        return str(place.relative_to(ROOT))
    return str(place)
