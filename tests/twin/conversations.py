"""Requests as agent, judge and editor send them, built over the demo world."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from actors.twin.catalog import Catalog, Entry, load_catalog
from actors.twin.layout import LABELS, body_of
from actors.twin.shares import Shares
from actors.twin.wire import Turn
from protocol.dataset import Question
from protocol.keys import slug

__all__ = [
    "DEMO",
    "QUESTIONS",
    "SHARES",
    "WORLD",
    "agent_turns",
    "choosing_turns",
    "demo",
    "editor_turns",
    "entries_of",
    "judge_turns",
    "observation",
    "questions",
    "skill_of",
]

DEMO = Path(__file__).resolve().parents[2] / "seeds" / "demo"
WORLD = DEMO / "world.json"
QUESTIONS = DEMO / "questions.jsonl"
SHARES = Shares(0.45, 0.30, 0.15, 0.10)


@cache
def demo() -> Catalog:
    """The demo world."""
    return load_catalog(WORLD, QUESTIONS)


def skill_of(task_type: str) -> str:
    """The seed's skill of a class, whole file."""
    return (DEMO / "skills" / "v1" / f"{slug(task_type)}.md").read_text(encoding="utf-8")


def entries_of(task_type: str) -> list[Entry]:
    """The questions of a class."""
    return [entry for entry in demo().entries if entry.row.task_type == task_type]


def questions() -> list[Question]:
    """All questions as messages."""
    return [
        Question(
            question_id=entry.row.question_id,
            video_id=entry.row.video_id,
            task_type=entry.row.task_type,
            question=entry.row.question,
            options=entry.row.options,
            answer=entry.row.answer,
        )
        for entry in demo().entries
    ]


def block(entry: Entry) -> str:
    """The question block of a prompt."""
    row = entry.row
    options = "\n".join(f"{LABELS[at]}. {body}" for at, body in enumerate(row.options))
    return (
        f"Video: {row.video_id}\nTask type: {row.task_type}\n\n"
        f"Question:\n{row.question}\n\nOptions:\n{options}"
    )


def agent_turns(entry: Entry, skill: str) -> tuple[Turn, ...]:
    """The first request of an attempt."""
    system = "# Video question answering\n\nAnswer.\n\n# Tools\n\n# Tool: view_node\n\nOpens."
    return (
        Turn("system", f"{system}\n\n# Strategy for this task type\n\n{body_of(skill)}"),
        Turn(
            "user",
            f"{block(entry)}\n\nVideo tree, top level:\n{entry.row.video_id}_L1_000 [0-60] A hall.",
        ),
    )


def choosing_turns(entry: Entry) -> tuple[Turn, ...]:
    """The first request of an attempt whose agent has to choose its strategy."""
    system, first = agent_turns(entry, "")
    names = [*sorted({slug(e.row.task_type) for e in demo().entries}), "default"]
    listed = "".join(f"- {name}: What it is for: this and that.\n" for name in names)
    head = system.text.partition("# Strategy for this task type")[0]
    label = f"Task type: {entry.row.task_type}\n"
    return (
        Turn("system", f"{head}# Strategies\n\nChoose: one.\n\n{listed}"),
        Turn("user", first.text.replace(label, "", 1)),
    )


def observation(step: int, text: str) -> Turn:
    """What the agent is shown after a step."""
    return Turn("user", f"Step {step} of 8.\n{text}")


def judge_turns(
    entry: Entry, given: str | None, skill: str, trajectory: str, graded: str = "none"
) -> tuple[Turn, ...]:
    """A judge's request. graded: the steps to grade, ``1, 3``."""
    return (
        Turn(
            "user",
            f"You judge a failed attempt.\n\n{block(entry)}\n\nCorrect answer: {entry.row.answer}\n"
            f"Agent's answer: {'none' if given is None else given}\n\n"
            f"Skill:\n<<<SKILL\n{skill}\nSKILL>>>\n\n"
            f"Trajectory:\n<<<TRAJECTORY\n{trajectory}\nTRAJECTORY>>>\n\n"
            f"Calls to grade: {graded}\n",
        ),
    )


def editor_turns(
    skill: str,
    cases: Sequence[tuple[str, str]],
    *,
    budget: int = 4,
    rejected: str = "none",
    tag: str = "",
) -> tuple[Turn, ...]:
    """An editor's request. cases: question id and cause. tag: makes requests differ."""
    shown = "\n\n".join(
        f"Case {name} [{cause}]\nQuestion: …\nAgent's answer: B\nFinding: {tag} …\nTrajectory: …"
        for name, cause in cases
    )
    return (
        Turn(
            "user",
            f"Improve the strategy.\n\nSkill:\n<<<SKILL\n{skill}\nSKILL>>>\n\n"
            f"Edit budget: {budget}\n\nCases:\n{shown}\n\nRejected before:\n{rejected}\n",
        ),
    )
