"""``bin/trm diff``: what two versions of the documents differ in."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import OptionError, note, write

if TYPE_CHECKING:
    from actors.commands.diff_text import Line
    from actors.commands.workspace_view import Kind

__all__ = ["add_diff_parser", "diff"]

SAME, DIFFERENT, TROUBLE = 0, 1, 2

_DESCRIPTION = """\
Compares two versions of the skills or of the prompts, document by document, or two files, as a
unified diff: in colour on a terminal, plain elsewhere."""

_EXAMPLES = """\
examples:
  bin/trm diff v1 v3
      the skills of the latest run in workspaces/
  bin/trm diff v1 v3 --workspace workspaces/my-001 --document "Counting Problem" --words
  bin/trm diff prompts/v1 prompts/v2 --workspace workspaces/my-001
  bin/trm diff seeds/demo/skills/v1 workspaces/my-001/skills/v3
  bin/trm diff mine.md workspaces/my-001/skills/v3/counting-problem.md

exit codes, as diff has them: 0 no difference, 1 differences, 2 they cannot be compared"""

_VERSION = re.compile(r"(?:(skills|prompts)/)?(v[1-9][0-9]*)/?")
_FOLDER = re.compile(r"(?:(.*)/)?(skills|prompts)/(v[1-9][0-9]*)/?")
_STYLES = {
    "file": "bold",
    "hunk": "cyan",
    "same": "",
    "removed": "red",
    "added": "green",
    "changed": "",
    "remark": "dim",
}
_WORD_STYLES = {"same": "", "removed": "red strike", "added": "bold green"}


def add_diff_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``diff`` and its options."""
    parser = commands.add_parser(
        "diff",
        prog="bin/trm diff",
        help="what two versions of the documents differ in",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("before", "after"):
        parser.add_argument(
            name,
            metavar="V1" if name == "before" else "V2",
            help="vN or skills/vN, prompts/vN; or the path of a version or of a file",
        )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="W",
        help="whose versions (default: those of the latest in workspaces/)",
    )
    parser.add_argument(
        "--document", metavar="NAME", help="only this one: a class, `system`, a tool"
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help="one line (~) for a line that was changed, with its words marked; "
        "plain: [-gone-]{+new+}",
    )
    parser.add_argument(
        "--context", type=int, default=3, metavar="N", help="unchanged lines around (default: 3)"
    )
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: on a terminal (default)",
    )
    parser.set_defaults(run=diff)


def diff(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.commands.patch_report import InputError
    from actors.config import ConfigError
    from actors.workspace.errors import WorkspaceError

    try:
        lines = _lines(arguments)
    except (OptionError, InputError, ConfigError, WorkspaceError, OSError) as error:
        note(f"bin/trm diff: {error}")
        return TROUBLE
    _print(lines, arguments.color)
    return DIFFERENT if lines else SAME


def _lines(arguments: argparse.Namespace) -> list[Line]:
    from actors.commands.diff_text import compare_texts, compared
    from actors.commands.patch_report import read_document

    if arguments.context < 0:
        raise OptionError(f"--context {arguments.context}: must be 0 or more")
    before, after = arguments.before, arguments.after
    how = {"words": arguments.words, "context": arguments.context}
    files = [Path(given).is_file() for given in (before, after)]
    if all(files):
        if arguments.document is not None or arguments.workspace is not None:
            raise OptionError("--document and --workspace are for versions, not for two files")
        read = (read_document(Path(before)), read_document(Path(after)))
        return compare_texts((before, after), *read, **how)
    if any(files):
        raise OptionError(f"{before} and {after}: one is a file, the other is none; give two alike")
    workspace = _workspace((before, after), arguments.workspace)
    sides = [_version(given, workspace) for given in (before, after)]
    if sides[0][1] != sides[1][1]:
        raise OptionError(f"{before} and {after}: skills and prompts cannot be compared")
    folders = [f"{kind}/{version}" for _, kind, version in sides]
    if folders[0] == folders[1]:  # of two workspaces
        folders = [str(root / folder) for (root, _, _), folder in zip(sides, folders, strict=True)]
    texts = _documents(sides, arguments.document)
    return compared(*texts, (folders[0], folders[1]), **how)


def _workspace(given: Sequence[str], named: Path | None) -> Path:
    """Where versions without a path lie; asked for once, since it says which it takes."""
    from actors.commands.workspace_view import find_workspace

    if not any(map(_VERSION.fullmatch, given)):
        return Path()
    return find_workspace(named, "bin/trm diff")


def _version(given: str, workspace: Path) -> tuple[Path, Kind, str]:
    """Where a version lies: root, kind, version. Raises OptionError."""
    short = _VERSION.fullmatch(given)
    if short is not None:
        kind: Kind = "prompts" if short[1] == "prompts" else "skills"
        return workspace, kind, short[2]
    place = _FOLDER.fullmatch(given)
    if place is None or not Path(given).is_dir():
        raise OptionError(
            f"{given}: is no version and no file; give vN, skills/vN, prompts/vN or a path"
        )
    return Path(place[1] or "/"), "prompts" if place[2] == "prompts" else "skills", place[3]


def _documents(
    sides: list[tuple[Path, Kind, str]], document: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Label -> text of both sides, of one document if it is named."""
    from actors.commands.documents import named
    from actors.commands.workspace_view import texts_of

    found = [texts_of(*side) for side in sides]
    if document is not None:
        there = sorted(found[0].keys() | found[1].keys())
        name = named(document, there)
        if name is None:
            raise OptionError(f"--document {document}: there are {', '.join(there)}")
        found = [{key: text for key, text in texts.items() if key == name} for texts in found]
    kind = sides[0][1]
    labelled = [{_label(kind, key): text for key, text in texts.items()} for texts in found]
    return labelled[0], labelled[1]


def _label(kind: Kind, name: str) -> str:
    """The file's name inside its version."""
    from protocol.keys import slug
    from protocol.slow import SYSTEM

    if kind == "skills":
        return f"{slug(name)}.md"
    return "system.md" if name == SYSTEM else f"tools/{name}.md"


def _print(lines: list[Line], color: str) -> None:
    from rich.text import Text

    from actors.commands.console import on_terminal, show, visible
    from actors.commands.diff_text import plain

    if color == "never" or (color == "auto" and not on_terminal()):
        write(plain(lines))
        return
    shown = []
    for line in lines:
        text = Text(line.prefix, "yellow" if line.mark == "changed" else _STYLES[line.mark])
        if line.mark == "changed":
            for piece in line.pieces:
                text.append(visible(piece.text), _WORD_STYLES[piece.mark])
        else:
            text.append(visible(line.text))
        shown.append(text)
    show(shown, colour=True)
