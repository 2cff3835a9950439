"""Where the program's own files are, where it writes by default, and what it is called.

A checkout has everything in one folder: ``config/``, ``seeds/``, ``bin/``, and what runs leave in
``workspaces/``. An installed package carries the configurations and the demo's seed with it, in
``actors/share/``, which a checkout does not have; there ``trm`` is the only command, and what is
written goes to the current folder, never into the package. No other module knows the difference.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["INSTALLED", "ROOT", "as_called", "launcher", "shown_path", "to_write", "version"]

_PACKAGE = Path(__file__).resolve().parent
_SHARE = _PACKAGE / "share"
_DISTRIBUTION = "video-tree-trm"

INSTALLED = (_SHARE / "config" / "default.yaml").is_file()
"""Whether this is an installed package, not a checkout."""

ROOT = _SHARE if INSTALLED else _PACKAGE.parent
"""What the program brings along, to be read only: ``config/`` and ``seeds/demo``."""

_COMMAND = re.compile(r"(?<![\w/.-])bin/(trm|train)(?![\w-])")
_CALLED = {"trm": "trm", "train": "trm train"}


def to_write(text: str) -> Path:
    """Where a relative folder of the configuration is made: in the checkout, or right here."""
    place = Path(text).expanduser()
    return place if place.is_absolute() else (Path.cwd() if INSTALLED else ROOT) / place


def as_called(text: str, *, installed: bool = INSTALLED) -> str:
    """The text with commands by the names that they have here.

    All texts are written for a checkout (``bin/trm gate``); installed that is ``trm gate``.
    """
    return _COMMAND.sub(lambda found: _CALLED[found[1]], text) if installed else text


def launcher(command: str = "train") -> str:
    """How to call ``bin/train`` from where the user stands, to be pasted into a shell.

    command: another one, such as ``report`` of ``bin/trm``.
    """
    if not INSTALLED:
        name = "train" if command == "train" else "trm"
        path = f"bin/{name}" if Path.cwd() == ROOT else shlex.quote(str(ROOT / "bin" / name))
        return path if command == "train" else f"{path} {command}"
    called = Path(sys.argv[0])
    on_path = shutil.which("trm")
    if on_path is not None and called.name == "trm" and Path(on_path).samefile(called):
        return f"trm {command}"
    if called.name == "trm":
        return f"{shlex.quote(str(called.resolve()))} {command}"
    return f"{shlex.quote(sys.executable)} -m actors.main {command}"


def shown_path(path: Path) -> str:
    """A path to be pasted into a shell where the user stands: short, quoted, never an option.

    The current folder itself is told whole: a line is kept and pasted elsewhere.
    """
    text = str(path)
    with suppress(ValueError):
        below = path.absolute().relative_to(Path.cwd())
        text = str(below) if below.parts else str(Path.cwd())
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def version() -> str:
    """Of this program, such as ``0.1.0``."""
    import tomllib
    from importlib import metadata  # here: every command waits for this module

    if INSTALLED:
        return metadata.version(_DISTRIBUTION)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])
