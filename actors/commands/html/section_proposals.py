"""What the editor proposed under the factorial gate, class by class and epoch by epoch. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from actors.commands.html.factorial_words import scope_name
from actors.commands.html.links import Links
from actors.commands.html.markup import Child, Markup, el, joined, table
from actors.commands.html.section_edits import edit_list
from actors.commands.html.story import Story
from actors.commands.html.words import RESULTS, STATUSES, count
from protocol.rows import EditRow

__all__ = ["proposals"]

_COLUMNS = ("class", "epoch", "right", "defects", "lapses", "new edits", "refused", "")


def proposals(story: Story, links: Links) -> Markup:
    """A line per class and epoch; below it what the engine refused of the proposals."""
    steps = [one for one in story.candidates if one.row is not None and one.step == 1]
    if not steps:
        return el("p.nothing", "No step is whole yet.")
    born = Counter(
        (one.view.row.born, one.view.row.task_type)
        for one in (story.factorial.edits if story.factorial else ())
    )
    rows: list[Child] = []
    lost: list[EditRow] = []
    for one in steps:
        row = one.row
        assert row is not None, "chosen above"
        proposed = row.result == "proposed"
        refused = [edit for edit in one.edits if edit.status != "applied"]
        lost += refused
        why = "" if proposed else RESULTS.get(row.result, row.result.replace("_", " "))
        cells = (
            one.epoch,
            f"{row.right}/{row.planned}" if row.planned else "–",
            row.defects,
            row.lapses,
            born[one.epoch, one.task_type] if proposed else 0,
            len(refused),
        )
        rows.append(
            el(
                "tr",
                el("td", el("b", scope_name(one.task_type))),
                [el("td.n", cell) for cell in cells],
                el("td.why", why),
            )
        )
    note = "Only the answers on the units to learn from; nothing of a test ever reached the editor."
    return joined(
        el("p.note", note),
        table(_COLUMNS, rows),
        _refusals(lost, links) if lost else None,
    )


def _refusals(lost: Sequence[EditRow], links: Links) -> Markup:
    kinds = Counter(edit.status for edit in lost)
    told = ", ".join(f"{n} {STATUSES.get(name, name)}" for name, n in kinds.items())
    return el(
        "details",
        el("summary", f"{count(len(lost), 'proposed edit')} that could not be tested: {told}"),
        edit_list(lost, links, ""),
    )
