"""The import contracts of ``pyproject.toml`` name all that is there: nothing slips past them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ACTORS = ROOT / "actors"
_FOR_EVERYBODY = {"actors.places"}  # where the program is and what its commands are called
_ABOVE = {"actors.commands", "actors.monitor"}


def contract(name: str) -> dict[str, list[str]]:
    """The lists of modules of a contract."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = [one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == name]
    return {key: value for key, value in found.items() if isinstance(value, list)}


def test_every_room_and_every_module_above_is_named() -> None:
    """A folder of ``actors`` is a room or stands above them; a module beside them stands above."""
    told = contract("no room knows what stands above the rooms")
    folders = {f"actors.{path.parent.name}" for path in _ACTORS.glob("*/__init__.py")}
    modules = {f"actors.{path.stem}" for path in _ACTORS.glob("*.py")} - {"actors.__init__"}
    assert set(told["source_modules"]) == folders - _ABOVE
    assert set(told["forbidden_modules"]) == (modules - _FOR_EVERYBODY) | _ABOVE
