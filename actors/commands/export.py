"""``bin/trm export``: a trained package as plain files that other agents can use."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import DONE, FAILED, USAGE, OptionError, note, write

if TYPE_CHECKING:
    from actors.commands.export_leaks import Quotation

__all__ = ["add_export_parser", "export"]

_DESCRIPTION = """\
Writes the documents of a workspace's best package into a new folder: skills/NAME.md with a front
matter as agents read a SKILL.md, prompts/system.md, prompts/tools/TOOL.md, and CARD.md: how they
were trained, their gains with intervals, every accepted edit with its p_gate and lower bound, what
is not known, and what the data's licence asks for.

Nothing is written if a text quotes the benchmark: a question id, an option of four words or more,
a question of eight or more, a sentence with a gold answer from what the editor had read. All
texts are held against all questions of the run. The workspace is only read."""

_EXAMPLES = """\
examples:
  bin/trm export workspaces/my-001 my-skills
  bin/trm export workspaces/my-001 my-skills --package v3/p1 --plain
      skills/v3 with prompts/v1, without the comments that mark regions

exit codes: 0 written, 1 refused: a text quotes the benchmark, or the ledger does not know it,
            2 the arguments or the workspace cannot be used (nothing is written unless 0)"""

_SHOWN = 20


def add_export_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``export`` and its options."""
    parser = commands.add_parser(
        "export",
        prog="bin/trm export",
        help="a trained package as plain skill files with a card",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workspace", type=Path, metavar="WORKSPACE", help="the run's folder")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a new or empty folder")
    parser.add_argument(
        "--package",
        default="best_hard",
        metavar="P",
        help="best_hard (default), best_mixed, or vN/pM for skills/vN with prompts/vM",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="take out the comments that mark regions; else the texts are as training has them",
    )
    parser.add_argument(
        "--allow-seed-text",
        action="store_true",
        help="let pass what the seed's own document said already; a question id never passes",
    )
    parser.set_defaults(run=export)


def export(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.commands.export_files import FrontError
    from actors.commands.lineage import UnknownText
    from actors.config import ConfigError
    from actors.dataset.errors import DataError
    from actors.workspace.errors import WorkspaceError

    try:
        return _export(arguments)
    except UnknownText as error:
        note(f"bin/trm export: {error}")
        return FAILED
    except (OptionError, ConfigError, DataError, FrontError, WorkspaceError, OSError) as error:
        note(f"bin/trm export: {error}")
        return USAGE


def _export(arguments: argparse.Namespace) -> int:
    from actors.commands.export_card import card
    from actors.commands.export_files import files_of
    from actors.commands.export_leaks import quotations
    from actors.commands.export_parts import gather
    from actors.commands.workspace_view import find_workspace

    folder: Path = arguments.folder
    _check_folder(folder)
    workspace = find_workspace(arguments.workspace, "bin/trm export")
    if folder.resolve().is_relative_to(workspace.resolve()):
        raise OptionError(f"{folder}: lies in the workspace, which is only read; name another")
    made = gather(workspace, arguments.package)
    files = files_of(made, plain=arguments.plain)
    found = quotations(files.texts, files.seeds, made.exposed)
    let_pass = [one for one in found if one.seeded and arguments.allow_seed_text]
    told = card(made, files.changed, plain=arguments.plain, let_pass=len(let_pass))
    found += quotations({"CARD.md": told}, {}, made.exposed)
    refused = [one for one in found if one not in let_pass]
    if refused:
        _tell(refused)
        return FAILED
    _write(folder, files.texts | {"CARD.md": told})
    passed = f"; {len(let_pass)} passages of the seed's own text were let pass" if let_pass else ""
    write(f"{folder}: {len(files.texts)} documents and CARD.md of {made.package}{passed}\n")
    return DONE


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder}: is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"{folder}: is not empty; name a new or an empty folder")
    if not folder.absolute().parent.is_dir():
        raise OptionError(f"{folder}: the folder that it would stand in is not there")


def _tell(refused: list[Quotation]) -> None:
    note("bin/trm export: nothing was written, for these texts quote the benchmark:")
    for one in refused[:_SHOWN]:
        seeded = " (so did the seed's; --allow-seed-text lets that pass)" if one.seeded else ""
        note(f"  {one.document}: {one.what}{seeded}")
    if len(refused) > _SHOWN:
        note(f"  ... and {len(refused) - _SHOWN} more")
    note("Choose another --package, or train on from a seed without such text.")


def _write(folder: Path, texts: dict[str, str]) -> None:
    """The whole folder aside, then renamed into place; an empty one gives way to it."""
    from actors.workspace.atomic import folder_aside

    target = folder.absolute()
    empty = target.is_dir()
    if empty:
        target.rmdir()
    try:
        with folder_aside(target) as aside:
            for name, text in sorted(texts.items()):
                path = aside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode("utf-8"))
    except BaseException:
        if empty:
            with suppress(OSError):
                target.mkdir()
        raise
