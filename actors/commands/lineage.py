"""How a document came to be: its changes from the seed's text to a version's, with their edits.

What a version holds is walked back to the seed's version; between two versions lie the accepted
steps of the epoch that made it, or its slow update. Every text on the way is known to the ledger by
its hash, so that a text which was edited by hand has no way back and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from actors.commands.blame_lines import Author, Change
from actors.commands.workspace_view import RUN_DB, Kind, chain_of, texts_of
from actors.factorial_view import adopted_edits, adopted_key
from actors.ledger.reader import Reader
from actors.workspace.versions import VersionMeta
from protocol.documents import text_hash
from protocol.evolver import Edit
from protocol.factorial_rows import PROMPTS, FactorialEditRow
from protocol.keys import slow_key, slug, step_key
from protocol.ledger import Where
from protocol.rows import DecisionRow, DocumentRow, EditRow, SlowRow, StepRow

__all__ = ["Hop", "Lineage", "UnknownText", "changes_of", "edit_key", "lineage"]

_EPOCH = re.compile(r"epoch-(\d+)(-slow)?$")


class UnknownText(ValueError):
    """A text is not what the ledger's edits make; the message says which and what to do."""


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a document: an accepted step, or an epoch's slow update.

    step: None for a slow update. edits: those that were applied, in order. decision: of the step's
    gate; slow: of the slow update; None where the ledger has no row (a run under way). tested: what
    the factorial gate found of each edit, by its key; empty under the ladder.
    """

    before: str
    after: str
    epoch: int
    step: int | None
    run_key: str
    edits: tuple[EditRow, ...]
    decision: DecisionRow | None = None
    slow: SlowRow | None = None
    tested: Mapping[str, FactorialEditRow] = {}

    @property
    def passes(self) -> tuple[str, ...]:
        """The steps whose rollouts the edits were made from; none of a slow update."""
        if self.step is None:
            return ()
        steps = {row.proposed_by for row in self.tested.values()} or {self.run_key}
        compared = {  # a rule is made from the draws of two epochs
            step_key(row.born - 1, row.task_type, 1)
            for row in self.tested.values()
            if msgspec.json.decode(row.edit, type=Edit).op == "momentum"
        }
        return tuple(sorted(steps | compared))


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """A document of one version: the text that it began with and what changed it since.

    begun: the version that the text began with. name: a class, ``system`` or a tool.
    """

    kind: Kind
    name: str
    version: str
    begun: str
    seed: str
    hops: tuple[Hop, ...]

    @property
    def text(self) -> str:
        """The text as it stands in the version."""
        return self.hops[-1].after if self.hops else self.seed


def edit_key(row: EditRow) -> str:
    """Names an edit in a whole run: ``e1/ocr-problems/s2/proposal#0``."""
    return f"{row.run_key}#{row.position}"


def changes_of(history: Lineage) -> tuple[Change, ...]:
    """The hops as ``blame_lines`` takes them."""
    return tuple(
        Change(
            after=hop.after,
            authors=tuple(
                Author(key=edit_key(row), target=row.target, content=row.content)
                for row in hop.edits
            ),
        )
        for hop in history.hops
    )


def lineage(workspace: Path, reader: Reader | None, kind: Kind, version: str, name: str) -> Lineage:
    """The history of one document.

    reader: None where no step was made yet. Raises UnknownText, VersionError, and KeyError if the
    version has no document of that name.
    """
    chain = chain_of(workspace, kind, version)
    texts = [texts_of(workspace, kind, meta.version).get(name) for meta in chain]
    if texts[-1] is None:
        raise KeyError(name)
    first = next(index for index, text in enumerate(texts) if text is not None)
    if first > 0:
        raise _unknown(workspace, kind, chain[first], name, "its parent has no such document")
    hops: list[Hop] = []
    at = texts[0] or ""
    for meta, text in zip(chain[1:], texts[1:], strict=True):
        if text is None:
            raise _unknown(workspace, kind, meta, name, "it is not there, but in its parent")
        if text == at:
            continue
        if reader is None:
            raise _unknown(workspace, kind, meta, name, f"there is no {RUN_DB}")
        found = _between(reader, meta, kind, name, at, text)
        if isinstance(found, str):
            raise _unknown(workspace, kind, meta, name, found)
        hops += found
        at = text
    return Lineage(
        kind=kind,
        name=name,
        version=version,
        begun=chain[0].version,
        seed=texts[0] or "",
        hops=tuple(hops),
    )


def _unknown(workspace: Path, kind: Kind, meta: VersionMeta, name: str, why: str) -> UnknownText:
    return UnknownText(
        f"{workspace / kind / meta.version}: {name}: the ledger does not know how this text came "
        f"to be ({why}); restore version and {RUN_DB} from one copy, or compare by text alone: "
        f"bin/trm diff {kind}/{meta.parent} {kind}/{meta.version} --document '{name}'"
    )


def _between(
    reader: Reader, meta: VersionMeta, kind: Kind, name: str, before: str, after: str
) -> list[Hop] | str:
    """The hops from a version's text to the next one's, or why there are none."""
    made = _EPOCH.search(meta.trigger)
    if made is None:
        return f"its trigger {meta.trigger!r} is none that training gives"
    epoch, slow = int(made[1]), made[2] is not None
    if slow:
        return _slow(reader, epoch, kind, name, before, after)
    if kind == "prompts":
        return _adopted_prompt(reader, epoch, name, before, after)
    return _steps(reader, epoch, name, before, after)


def _steps(reader: Reader, epoch: int, name: str, before: str, after: str) -> list[Hop] | str:
    """The epoch's accepted steps of a class, which must lead from one text to the other."""
    rows = reader.rows(
        StepRow,
        Where(column="epoch", value=epoch),
        Where(column="task_type", value=name),
        Where(column="result", value="accept"),
    )
    hops: list[Hop] = []
    at = before
    for row in sorted(rows, key=lambda row: row.step):
        if row.skill_before != text_hash(at):
            return f"the step {row.run_key} began with another text"
        stored = reader.rows(DocumentRow, Where(column="hash", value=row.skill_after))
        if not stored:
            return f"the text after step {row.run_key} is not in {RUN_DB}"
        hop = _step_hop(reader, row, at, stored[0].text)
        if not hop.edits:
            return f"{RUN_DB} has no applied edit of the step {row.run_key}"
        hops.append(hop)
        at = hop.after
    if at != after:
        return f"epoch {epoch}'s accepted steps lead to another text"
    return hops


def _step_hop(reader: Reader, row: StepRow, before: str, after: str) -> Hop:
    decisions = reader.rows(DecisionRow, Where(column="run_key", value=row.run_key))
    edits = _applied(reader, row.run_key)
    return Hop(
        before=before,
        after=after,
        epoch=row.epoch,
        step=row.step,
        run_key=row.run_key,
        edits=edits,
        decision=decisions[0] if decisions else None,
        tested=_tested(reader, row.epoch, row.task_type, edits),
    )


def _adopted_prompt(
    reader: Reader, epoch: int, name: str, before: str, after: str
) -> list[Hop] | str:
    """What the factorial gate adopted in a prompt, whose text must be one that it recorded."""
    step = step_key(epoch, PROMPTS, 2)
    edits = _applied(reader, f"{step}/adopted/{name}")
    if not edits:
        return "only the slow update and the factorial gate write prompts"
    if not reader.rows(DocumentRow, Where(column="hash", value=text_hash(after))):
        return f"{RUN_DB} does not hold this text"
    return [
        Hop(
            before=before,
            after=after,
            epoch=epoch,
            step=2,
            run_key=step,
            edits=edits,
            tested=_tested(reader, epoch, PROMPTS, edits),
        )
    ]


def _tested(
    reader: Reader, epoch: int, scope: str, edits: Sequence[EditRow]
) -> dict[str, FactorialEditRow]:
    """The factorial gate's row of each edit that it adopted; the step has them in its order."""
    names = {edit_key(row) for row in edits}
    found = {
        f"{adopted_key(epoch, row)}#{position}": row
        for position, row in adopted_edits(reader, scope)
    }
    return {name: row for name, row in found.items() if name in names}


def _slow(
    reader: Reader, epoch: int, kind: Kind, name: str, before: str, after: str
) -> list[Hop] | str:
    """The epoch's slow update of a document, whose text must be one that it recorded."""
    own = f"momentum/{slug(name)}" if kind == "skills" else name
    run_key = f"{slow_key(epoch)}/{own}"
    edits = _applied(reader, run_key)
    if not edits:
        return f"epoch {epoch}'s slow update has no edit of it"
    if not reader.rows(DocumentRow, Where(column="hash", value=text_hash(after))):
        return f"{RUN_DB} does not hold this text"
    slow = reader.rows(SlowRow, Where(column="epoch", value=epoch))
    return [
        Hop(
            before=before,
            after=after,
            epoch=epoch,
            step=None,
            run_key=run_key,
            edits=edits,
            slow=slow[0] if slow else None,
        )
    ]


def _applied(reader: Reader, run_key: str) -> tuple[EditRow, ...]:
    """What was applied under a key, in order."""
    rows: Sequence[EditRow] = reader.rows(
        EditRow,
        Where(column="run_key", value=f"{run_key}/*"),
        Where(column="status", value="applied"),
    )
    return tuple(rows)
