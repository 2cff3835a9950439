"""Reading what the editor is sent: six layouts, each as a type of its own.

Which one a request has is told by a block that only that layout has; a request with none of
them is one about a skill. Pure, and strict: what lacks or cannot be read is refused with the
block's name, and nothing is guessed.

    ``Candidates:``         RankBrief       which edits are the best
    ``Notes to compact:``   NotesBrief      an appendix that grew too long
    ``Compared:``           MomentumBrief   how questions fared over an epoch
    ``Document: system``    DocumentBrief   the system prompt and its cases
    ``Document: <tool>``    DocumentBrief   a tool prompt and its cases
    none of these           EditorBrief     a skill and its cases
"""

from __future__ import annotations

import json
import re
from typing import Literal, get_args

import msgspec

from actors.twin.layout import LayoutError, fenced, lacks, task_type_of

__all__ = [
    "SYSTEM",
    "Brief",
    "Candidate",
    "CaseLine",
    "Change",
    "ComparedLine",
    "DocumentBrief",
    "EditorBrief",
    "MomentumBrief",
    "NotesBrief",
    "RankBrief",
    "brief_of",
    "cases_of",
    "document_of",
]

SYSTEM = "system"

Change = Literal["regressed", "persistent", "improved", "stable"]

_CASE = re.compile(r"^Case (\S.*?) \[(\w+)\][ \t]*$", re.MULTILINE)
_BUDGET = re.compile(r"^Edit budget: (\d+)[ \t]*$", re.MULTILINE)
_CHOOSE = re.compile(r"^Choose: (\d+)[ \t]*$", re.MULTILINE)
_AT_MOST = re.compile(r"^Notes at most: (\d+)[ \t]*$", re.MULTILINE)
_MOMENTUM = re.compile(r"^Momentum budget: (\d+) characters[ \t]*$", re.MULTILINE)
_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_CANDIDATE = re.compile(rf"(\d+)\. (\w+) ({_QUOTED}) -> ({_QUOTED})(?: \(support: (\d+)\))?[ \t]*")
_NOTE = re.compile(r"(\d+)\. (.*\S)[ \t]*")
# What may follow a list of rejected edits in the editor's message.
_NEXT_BLOCK = re.compile(r"^(?:Skill|Document|Cases|Edit budget|Growth budget):", re.MULTILINE)


class CaseLine(msgspec.Struct, frozen=True):
    """The head of a case. defect: whether it speaks for an edit."""

    question_id: str
    defect: bool


class EditorBrief(msgspec.Struct, frozen=True):
    """A skill and its cases. skill: the whole file. rejected: the block as it stands."""

    skill: str
    task_type: str
    budget: int
    cases: tuple[CaseLine, ...]
    rejected: str


class DocumentBrief(msgspec.Struct, frozen=True):
    """The system prompt or a tool prompt and its cases. name: ``system`` or the tool's."""

    name: str
    text: str
    budget: int
    cases: tuple[CaseLine, ...]
    rejected: str


class Candidate(msgspec.Struct, frozen=True):
    """An edit that may be chosen. number: as shown. support: how many cases speak for it."""

    number: int
    op: str
    target: str
    content: str
    support: int


class RankBrief(msgspec.Struct, frozen=True):
    """Which candidates to keep. choose: at most so many."""

    skill: str
    task_type: str
    choose: int
    candidates: tuple[Candidate, ...]


class NotesBrief(msgspec.Struct, frozen=True):
    """Notes to be compacted into at most so many."""

    skill: str
    task_type: str
    at_most: int
    notes: tuple[str, ...]


class ComparedLine(msgspec.Struct, frozen=True):
    """The head of a comparison: what became of a question over the epoch."""

    question_id: str
    change: Change


class MomentumBrief(msgspec.Struct, frozen=True):
    """How a class's questions fared. budget: characters of the region."""

    skill: str
    task_type: str
    budget: int
    compared: tuple[ComparedLine, ...]


Brief = EditorBrief | DocumentBrief | RankBrief | NotesBrief | MomentumBrief


def brief_of(text: str) -> Brief:
    """Read an editor's request. Raises LayoutError naming the block that lacks or is damaged."""
    around = _around(text)
    own = re.findall(
        r"^(Candidates:|Notes to compact:|Compared:|Document: \S+)[ \t]*$", around, re.MULTILINE
    )
    if len(own) > 1:
        raise LayoutError(f"the request has the blocks of several layouts: {', '.join(own)}")
    block = own[0] if own else ""
    if block == "Candidates:":
        return _rank(text, around)
    if block == "Notes to compact:":
        return _notes(text, around)
    if block == "Compared:":
        return _momentum(text, around)
    if block:
        return _document(text, around, block.removeprefix("Document: "))
    if "<<<DOCUMENT\n" in text and "<<<SKILL\n" not in text:
        lacks("Document:")
    return _skill(text, around)


def document_of(brief: Brief) -> str:
    """The whole text that the brief is about."""
    return brief.text if isinstance(brief, DocumentBrief) else brief.skill


def cases_of(brief: Brief) -> tuple[str, ...]:
    """The question ids that the brief shows."""
    if isinstance(brief, MomentumBrief):
        return tuple(line.question_id for line in brief.compared)
    if isinstance(brief, EditorBrief | DocumentBrief):
        return tuple(case.question_id for case in brief.cases)
    return ()


def _around(text: str) -> str:
    """The request without its document, a text of unknown content in which blocks may stand."""
    for name in ("SKILL", "DOCUMENT"):
        begin, end = text.find(f"<<<{name}\n"), text.rfind(f"\n{name}>>>")
        if 0 <= begin < end:
            return text[:begin] + text[end + len(f"\n{name}>>>") :]
    half = re.search(r"^<<<DOCUMENT$|^DOCUMENT>>>", text, re.MULTILINE)
    return lacks("<<<SKILL" if half is None else "<<<DOCUMENT")


def _skill(text: str, around: str) -> EditorBrief:
    skill = fenced(text, "SKILL")
    budget, rejected = _number(_BUDGET, around, "Edit budget:"), _rejected(around)
    return EditorBrief(
        skill=skill,
        task_type=task_type_of(skill),
        budget=budget,
        cases=tuple(CaseLine(name, label == "defect") for name, label in _cases(around)),
        rejected=rejected,
    )


def _document(text: str, around: str, name: str) -> DocumentBrief:
    document = fenced(text, "DOCUMENT")
    budget, rejected = _number(_BUDGET, around, "Edit budget:"), _rejected(around)
    cases = _cases(around)
    odd = [label for _, label in cases if name != SYSTEM and label not in ("failing", "good")]
    if odd:
        raise LayoutError(f"a case of a tool is 'failing' or 'good', not {odd[0]!r}")
    return DocumentBrief(
        name=name,
        text=document,
        budget=budget,
        cases=tuple(CaseLine(question_id, label != "good") for question_id, label in cases),
        rejected=rejected,
    )


def _rank(text: str, around: str) -> RankBrief:
    skill = fenced(text, "SKILL")
    candidates = []
    for at, line in enumerate(_lines(around, "Candidates:"), start=1):
        found = _CANDIDATE.fullmatch(line)
        if found is None or int(found[1]) != at:
            raise LayoutError(f"line {at} of the block 'Candidates:' cannot be read: {line!r}")
        target, content = (json.loads(quoted, strict=False) for quoted in found.group(3, 4))
        candidates.append(Candidate(at, found[2], target, content, int(found[5] or 0)))
    return RankBrief(
        skill=skill,
        task_type=task_type_of(skill),
        choose=_number(_CHOOSE, around, "Choose:"),
        candidates=tuple(candidates),
    )


def _notes(text: str, around: str) -> NotesBrief:
    skill = fenced(text, "SKILL")
    notes = []
    for at, line in enumerate(_lines(around, "Notes to compact:"), start=1):
        found = _NOTE.fullmatch(line)
        if found is None or int(found[1]) != at:
            raise LayoutError(
                f"line {at} of the block 'Notes to compact:' cannot be read: {line!r}"
            )
        notes.append(found[2])
    return NotesBrief(
        skill=skill,
        task_type=task_type_of(skill),
        at_most=_number(_AT_MOST, around, "Notes at most:"),
        notes=tuple(notes),
    )


def _momentum(text: str, around: str) -> MomentumBrief:
    skill = fenced(text, "SKILL")
    compared = []
    for question_id, label in _CASE.findall(around):
        change = next((known for known in get_args(Change) if known == label), None)
        if change is None:
            raise LayoutError(f"Case {question_id}: {label!r} is no change of a question")
        compared.append(ComparedLine(question_id, change))
    if not compared:
        raise LayoutError("the block 'Compared:' has no case")
    return MomentumBrief(
        skill=skill,
        task_type=task_type_of(skill),
        budget=_number(_MOMENTUM, around, "Momentum budget:"),
        compared=tuple(compared),
    )


def _cases(around: str) -> list[tuple[str, str]]:
    if not re.search(r"^Cases:[ \t]*$", around, re.MULTILINE):
        lacks("Cases:")
    return _CASE.findall(around)


def _rejected(around: str) -> str:
    _, mark, rest = around.partition("\nRejected before:")
    if not mark:
        lacks("Rejected before:")
    end = _NEXT_BLOCK.search(rest)
    # Texts are shown as JSON strings there.
    said = rest if end is None else rest[: end.start()]
    return said.replace("\\n", "\n").replace('\\"', '"')


def _lines(around: str, block: str) -> list[str]:
    """The lines below a block's head, up to an empty one."""
    found = re.search(rf"^{re.escape(block)}[ \t]*\n", around, re.MULTILINE)
    lines: list[str] = []
    for line in around[found.end() :].split("\n") if found else ():
        if not line.strip():
            break
        lines.append(line)
    if not lines:
        raise LayoutError(f"the block {block!r} is empty")
    return lines


def _number(pattern: re.Pattern[str], around: str, block: str) -> int:
    found = pattern.search(around)
    if found is None:
        lacks(block)
    return int(found[1])
