"""The factorial gate: what is drawn, which edits are undecided, what is adopted in the end.

Replies to whoever proposes say nothing of how an edit fares: no count, no p-value, no drop.
"""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message, Refused, Request
from protocol.dataset import Unit
from protocol.documents import Document, Prompts, Skill
from protocol.evolver import Case, Edit, EditReport, NoProposal
from protocol.slow import Compared

__all__ = [
    "Certified",
    "Certify",
    "ClassFold",
    "EditorArm",
    "EditorArms",
    "EditorCoins",
    "FactorialPlan",
    "FactorialUnits",
    "GetUnits",
    "PhaseDone",
    "PhaseStopped",
    "PlanFactorial",
    "ProposeEdits",
    "ProposedEdits",
    "RenderEdits",
    "Rendered",
    "RunPhase",
]


# -- what is drawn ----------------------------------------------------------------------


class FactorialUnits(Message, frozen=True, kw_only=True, tag=True):
    """All diag units of the trainable classes, by class and unit; nothing of outcomes."""

    units: tuple[Unit, ...]


class GetUnits(Request[FactorialUnits | Refused], frozen=True, kw_only=True, tag=True):
    """The units that a factorial run divides. Refused: there is no class to train."""

    IDEMPOTENT: ClassVar[bool] = True


class ClassFold(Message, frozen=True, kw_only=True, tag=True):
    """The units of a class that proposals may read, by id; the others are tested on.

    pairs: of each phase, the certification last.
    """

    task_type: str
    design: tuple[str, ...]
    pairs: tuple[int, ...]


class FactorialPlan(Message, frozen=True, kw_only=True, tag=True):
    """The schedule, as far as the training needs it. rollouts: questions answered, at most.

    lines: the schedule and what it can see, for people.
    """

    folds: tuple[ClassFold, ...]
    n_pairs: int
    draws: int
    rollouts: int
    lines: tuple[str, ...]


class PlanFactorial(Request[FactorialPlan | Refused], frozen=True, kw_only=True, tag=True):
    """Fix and keep all that will be drawn, and begin every class with its sentinel.

    Refused: another schedule was fixed before, or the units make none.
    """

    IDEMPOTENT: ClassVar[bool] = True

    units: tuple[Unit, ...]
    n_epochs: int


# -- edits ------------------------------------------------------------------------------


class Rendered(Message, frozen=True, kw_only=True, tag=True):
    """One document per set of edits, in the order asked."""

    skills: tuple[Skill, ...]


class RenderEdits(Request[Rendered], frozen=True, kw_only=True, tag=True):
    """The base document with some of its edits on.

    edits: in canonical order. on: for each document, the places of its edits.
    """

    IDEMPOTENT: ClassVar[bool] = True

    base: Skill
    edits: tuple[Edit, ...]
    on: tuple[tuple[int, ...], ...]


class ProposedEdits(Message, frozen=True, kw_only=True, tag=True):
    """New edits that can each be on or off, beside the earlier ones.

    groups: places in (earlier, then new) of edits that exclude each other; only those with
        company are listed.
    """

    new: tuple[Edit, ...]
    groups: tuple[tuple[int, ...], ...]
    reports: tuple[EditReport, ...]
    editor_calls: int
    parse_failures: int


class ProposeEdits(Request[ProposedEdits | NoProposal], frozen=True, kw_only=True, tag=True):
    """Propose edits of the base document, for a test of all undecided edits together.

    earlier: all that the class has had in this run, in canonical order, whatever became of them.
    defects, lapses: as of ``Propose``; a note is an edit of its own. compared: the design fold's
        questions in the epoch before and in this one, for momentum rules; none in the first epoch.
    n_edits: edits, notes and rules together, at most.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    base: Skill
    earlier: tuple[Edit, ...]
    defects: tuple[Case, ...]
    lapses: tuple[Case, ...]
    n_edits: int
    compared: tuple[Compared, ...] = ()


# -- draws ------------------------------------------------------------------------------


class EditorArm(Message, frozen=True, kw_only=True, tag=True):
    """The documents under which the editor's draw of a unit is made."""

    unit_id: str
    skill: Skill
    prompts: Prompts


class EditorArms(Message, frozen=True, kw_only=True, tag=True):
    """One arm per unit, in the order asked."""

    arms: tuple[EditorArm, ...]


class EditorCoins(Request[EditorArms], frozen=True, kw_only=True, tag=True):
    """The documents of an epoch's editor draws: the base, every undecided edit by an own coin."""

    IDEMPOTENT: ClassVar[bool] = True

    epoch: int
    base: Skill
    prompts: Prompts
    unit_ids: tuple[str, ...]


class PhaseDone(Message, frozen=True, kw_only=True, tag=True):
    """The phase is whole. pairs: of the phase; void: of them; drawn_now: in this request."""

    pairs: int
    void: int
    drawn_now: int


class PhaseStopped(Message, frozen=True, kw_only=True, tag=True):
    """A stop was asked for; what was drawn is kept, the rest is drawn on resume."""

    drawn_now: int


class RunPhase(Request[PhaseDone | PhaseStopped | Refused], frozen=True, kw_only=True, tag=True):
    """Draw a class's pairs of a phase: epochs from 1, and after the last the certification.

    prompts: those that the run began with. units: at least all that are tested on. others: the
        package's other skills, the same for both arms.
    Refused: infrastructure lost too many pairs; they stay open and are drawn on resume.
    """

    IDEMPOTENT: ClassVar[bool] = True

    task_type: str
    phase: int
    base: Skill
    prompts: Prompts
    units: tuple[Unit, ...]
    others: tuple[Skill, ...] = ()


# -- the decision -----------------------------------------------------------------------


class Certified(Message, frozen=True, kw_only=True, tag=True):
    """What the run adopts.

    skills: the documents of the classes that something was adopted in; prompts: the system prompt
    and the tool prompts among such. n_edits: M.
    sentinels_ok: false voids all claims of the run; nothing is adopted then.
    """

    skills: tuple[Skill, ...]
    prompts: tuple[Document, ...]
    n_edits: int
    adopted: int
    sentinels_ok: bool
    sentinel_p: float


class Certify(Request[Certified], frozen=True, kw_only=True, tag=True):
    """Decide over all edits of the run, once all its pairs are drawn.

    bases: one per class. prompts: those that the run began with.
    """

    IDEMPOTENT: ClassVar[bool] = True

    bases: tuple[Skill, ...]
    prompts: Prompts
