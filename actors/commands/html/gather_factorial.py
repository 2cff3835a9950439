"""What the factorial gate did, gathered for the report; nothing in a run with the ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path as File

from actors.commands.diff_text import Line, compare_texts
from actors.commands.html.gaps import Gaps
from actors.commands.html.story import FactorialStory, TestedEdit
from actors.config import resolve_path
from actors.factorial_documents import edited_documents
from actors.factorial_report import true_gains
from actors.factorial_view import (
    EditView,
    FactorialView,
    adopted_edits,
    adopted_key,
    factorial_view,
)
from actors.ledger.reader import Reader
from actors.system import read_seed_package, simulated_roles
from actors.twin.truth import classify
from actors.twin.world import load_world
from protocol.dataset import Question
from protocol.documents import PackageTexts
from protocol.factorial_rows import PROMPTS
from protocol.settings import Config

__all__ = ["factorial_of"]

_CONTEXT = 2


def factorial_of(
    reader: Reader | None,
    config: Config,
    source: File,
    questions: Sequence[Question],
    workspace: File,
    gaps: Gaps,
) -> FactorialStory | None:
    """Schedule, edits and decision, every edit with its diff and its planted worth."""
    view = None if reader is None else factorial_view(reader)
    if view is None or reader is None:
        return None
    none: dict[str, tuple[Line, ...]] = {}
    nothing: dict[str, float] = {}
    base = gaps.try_to("the seed's documents", lambda: read_seed_package(workspace), None)
    diffs = none if base is None else _diffs(view, base, config, gaps)
    gains = nothing
    if base is not None:
        read = partial(_planted, reader, config, source, questions, base)
        gains = gaps.try_to("the planted truth", read, nothing)
    return FactorialStory(
        view=view,
        edits=tuple(_tested(one, diffs, gains) for one in view.proposed),
        drop_harm=config.gate.drop_harm,
        origins=_origins(reader, view),
    )


def _tested(
    one: EditView, diffs: Mapping[str, tuple[Line, ...]], gains: Mapping[str, float]
) -> TestedEdit:
    gain = gains.get(one.row.edit_id)
    return TestedEdit(
        view=one,
        diff=diffs.get(one.row.edit_id, ()),
        gain=gain,
        worth="" if gain is None else classify(gain),
    )


def _diffs(
    view: FactorialView, base: PackageTexts, config: Config, gaps: Gaps
) -> dict[str, tuple[Line, ...]]:
    """What each edit alone makes of its document."""
    found: dict[str, tuple[Line, ...]] = {}
    for document in edited_documents(base, [one.row for one in view.proposed], config.evolver):
        try:
            for row in document.rows:
                lines = compare_texts(
                    ("", ""),
                    document.text,
                    document.under({row.edit_id}),
                    words=True,
                    context=_CONTEXT,
                )
                found[row.edit_id] = tuple(line for line in lines if line.mark != "file")
        except ValueError as error:  # the document was changed by hand
            gaps.told.append(f"what the edits of {document.name} change: {error}")
    return found


def _planted(
    reader: Reader,
    config: Config,
    source: File,
    questions: Sequence[Question],
    base: PackageTexts,
) -> dict[str, float]:
    """What each edit is truly worth; empty unless the simulator answered."""
    if "search" not in simulated_roles(config):
        return {}
    world = load_world(resolve_path(config.twin.world, source).read_bytes())
    try:
        return true_gains(reader, config, base, world, questions)
    except ValueError as error:
        raise OSError(f"the edits do not stand on the seed's documents: {error}") from error


def _origins(reader: Reader, view: FactorialView) -> dict[str, str]:
    """The edit behind each key that ``blame`` names an adopted edit by."""
    scopes = (*(own.task_type for own in view.classes), PROMPTS)
    return {
        f"{adopted_key(view.n_epochs, row)}#{position}": row.edit_id
        for scope in scopes
        for position, row in adopted_edits(reader, scope)
    }
