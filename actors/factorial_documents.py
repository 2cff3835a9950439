"""The documents of a run under the factorial gate: as the run began, and with edits on. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from actors.evolver.compose import Composition, compose, render
from actors.evolver.factorial_prompts import compose_prompt
from protocol.documents import Document, PackageTexts, Skill
from protocol.evolver import Edit
from protocol.factorial_prompts import documents_in, with_documents
from protocol.factorial_rows import PROMPTS, FactorialEditRow
from protocol.settings import EvolverSettings

__all__ = ["EditedDocument", "edited_documents", "edited_package"]


class EditedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One document and its edits, in canonical order. scope: a class, or ``PROMPTS``; name: the
    class, ``system`` or a tool's."""

    scope: str
    name: str
    text: str
    rows: tuple[FactorialEditRow, ...]
    composition: Composition

    def under(self, edit_ids: Collection[str]) -> str:
        """The text with these of its edits on.

        Raises ValueError if one does not stand on it, or two exclude each other.
        """
        on = [place for place, row in enumerate(self.rows) if row.edit_id in edit_ids]
        return render(self.composition, on)


def edited_documents(
    base: PackageTexts, rows: Iterable[FactorialEditRow], settings: EvolverSettings
) -> list[EditedDocument]:
    """Every document that there are edits of: the classes' skills in the order of the rows, then
    the prompts'. Raises KeyError for edits of a document that the package has not."""
    own: defaultdict[tuple[str, str], list[FactorialEditRow]] = defaultdict(list)
    for row in rows:
        if not row.sentinel:
            own[row.task_type, row.document].append(row)
    texts = {one.name: one for one in documents_in(base.prompts)}
    found = []
    for (scope, name), members in own.items():
        members.sort(key=lambda row: row.position)
        edits = [msgspec.json.decode(row.edit, type=Edit) for row in members]
        if scope == PROMPTS:
            document = texts[name]
            made = compose_prompt(document, edits, settings.max_prompt_chars)
        else:
            document = Document(name=scope, text=base.skill_for(scope).text)
            made = compose(document.text, edits, settings.max_skill_chars)
        found.append(
            EditedDocument(
                scope=scope,
                name=document.name,
                text=document.text,
                rows=tuple(members),
                composition=made,
            )
        )
    return sorted(found, key=lambda one: one.scope == PROMPTS)


def edited_package(
    base: PackageTexts, documents: Sequence[EditedDocument], edit_ids: Collection[str]
) -> PackageTexts:
    """The package with these edits on. Raises as ``EditedDocument.under``."""
    texts, changed = base, []
    for one in documents:
        text = one.under(edit_ids)
        if one.scope == PROMPTS:
            changed.append(Document(name=one.name, text=text))
        else:
            texts = texts.with_skill(Skill(task_type=one.scope, text=text))
    return msgspec.structs.replace(texts, prompts=with_documents(base.prompts, changed))
