"""``bin/trm patch``: edits applied to a document by hand, with the engine that training uses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from actors.commands.seed_options import DONE, FAILED, USAGE, note, write

if TYPE_CHECKING:
    from actors.commands.patch_report import Kind, PatchReport
    from actors.evolver.patch import Limits

__all__ = ["add_patch_parser", "patch"]

_DESCRIPTION = """\
Applies edits to a skill, the system prompt or a tool prompt with the patch engine that training
uses: a target must occur exactly once in the body; front matter, regions between markers and
frozen sections stay byte for byte; a body may not outgrow its budgets. Every edit gets a status.

The report is one JSON object on stdout. The document is written only where --out says so, and
only if it passes; an edit that is refused leaves the others in force. Line ends and a byte order
mark stay as they are."""

_EXAMPLES = """\
examples:
  bin/trm patch counting.md edits.json
      says what would become of each edit; writes nothing
  bin/trm patch counting.md edits.json --out counting.md
      replaces the document, atomically; "inverse" in the report is the way back
  echo '[{"op": "append", "content": "- Count twice."}]' | bin/trm patch counting.md - --edits 1

edits.json: a list of edits, or an editor's whole reply {"edits": [...]}. An edit:
  {"op": "append|insert_after|replace|delete", "target": "...", "content": "...",
   "support": ["question id", ...], "reason": "..."}
append needs no target, delete no content; support and reason may be left out.

statuses: applied, no_match, ambiguous, protected, marker, frozen, empty, noop, too_long,
over_budget; why, says the edit's "detail".
A leak check needs a run's questions; it is made in training and by `bin/trm export`, not here.

exit codes: 0 all edits applied, 1 an edit was refused or nothing could be written,
            2 document or edits cannot be read (nothing is written then)"""


def add_patch_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``patch`` and its options."""
    parser = commands.add_parser(
        "patch",
        prog="bin/trm patch",
        help="apply edits to a document by hand",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("document", type=Path, metavar="DOC.md", help="the document")
    parser.add_argument("edits", type=Path, metavar="EDITS.json", help="the edits; - is stdin")
    parser.add_argument("--out", type=Path, metavar="F", help="where the new document goes")
    parser.add_argument(
        "--kind",
        choices=("skill", "system", "tool"),
        help="which sections are frozen and which budget holds (default: a skill has front matter, "
        "a tool prompt begins with `# Tool:`, the system prompt has a section Capability)",
    )
    budgets = parser.add_argument_group("budgets (default: as in config/default.yaml)")
    budgets.add_argument(
        "--edits",
        type=_count,
        metavar="N",
        dest="edit_budget",
        help="most edits that are applied (default: evolver.edit_budget_start)",
    )
    budgets.add_argument(
        "--max-chars",
        type=_count,
        metavar="N",
        help="of the body (default: evolver.max_skill_chars, of a prompt max_prompt_chars)",
    )
    budgets.add_argument(
        "--max-growth",
        type=_share,
        metavar="X",
        help="of the body, as a share of what it was (default: evolver.max_growth)",
    )
    parser.set_defaults(run=patch)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, 1 or more")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: must be above 0 and at most 100, such as 0.5")
    return value


def patch(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from actors.commands.patch_report import InputError

    try:
        return _patch(arguments)
    except (InputError, OSError) as error:
        note(f"bin/trm patch: {error}")
        return USAGE


def _patch(arguments: argparse.Namespace) -> int:
    import msgspec

    from actors.commands.patch_report import guess_kind, patch_document, read_document, read_edits
    from actors.workspace.atomic import write_atomic

    out: Path | None = arguments.out
    text = read_document(arguments.document)
    kind = arguments.kind or guess_kind(arguments.document, text)
    edits = read_edits(arguments.edits)
    _check_out(out)
    new, report = patch_document(text, edits, _limits(arguments, kind), kind)
    writes = out is not None and report.document_ok and report.applied > 0
    if out is not None and writes:
        write_atomic(out.resolve(), new.encode("utf-8"))  # a link stays one
        report = msgspec.structs.replace(report, written=str(out))
    write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    _explain(arguments, report)
    all_applied = report.document_ok and report.applied == len(report.edits) > 0
    return DONE if all_applied else FAILED


def _check_out(out: Path | None) -> None:
    from actors.commands.patch_report import InputError

    if out is None:
        return
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder; name a file")
    if not out.absolute().parent.is_dir():
        raise InputError(f"--out {out}: its folder is not there; make it first")


def _limits(arguments: argparse.Namespace, kind: Kind) -> Limits:
    from actors.config import load_config
    from actors.evolver.patch import Limits

    evolver = load_config(None).evolver
    longest = evolver.max_skill_chars if kind == "skill" else evolver.max_prompt_chars
    growth = arguments.max_growth
    return Limits(
        edits=arguments.edit_budget or evolver.edit_budget_start,
        max_chars=arguments.max_chars or longest,
        max_growth=evolver.max_growth if growth is None else growth,
    )


def _explain(arguments: argparse.Namespace, report: PatchReport) -> None:
    """On stderr, for people: what was not done, and why."""
    for problem in report.problems:
        note(f"{arguments.document}: {problem}; mend it by hand, a damaged document is not edited")
    refused = [edit for edit in report.edits if edit.status != "applied"]
    for edit in refused:
        note(f"edit {edit.position}: {edit.status}: {edit.detail}")
    if report.ignored:
        note(f"left aside, not edits of the body: {', '.join(report.ignored)}")
    if arguments.out is not None and report.written is None:
        note(f"{arguments.out} was not written: no edit was applied")
    elif arguments.out is None and report.applied:
        note("Nothing was written; --out F writes the new document.")
