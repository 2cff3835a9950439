"""What the agent reads: the request layout of the search role. Pure.

Everything is built from a ``PublicQuestion``, which has neither the gold answer nor the
question id: neither can leak, because neither is here.
"""

from __future__ import annotations

import re

from prompts.question import question_block
from protocol.dataset import PublicQuestion
from protocol.documents import Prompts, Skill
from protocol.llm import ChatMessage

__all__ = [
    "last_step_text",
    "observation_text",
    "opening_messages",
    "opening_text",
    "skill_body",
    "system_text",
    "unreadable_text",
]

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_ONLY_SUBMIT = "Call submit_answer now, with the best answer that you have; no other tool runs."


def skill_body(text: str) -> str:
    """A skill file without its front matter and the blank lines behind it."""
    return _FRONT_MATTER.sub("", text, count=1).lstrip("\r\n")


def system_text(prompts: Prompts, skill: Skill) -> str:
    """The system message: system prompt, tool prompts, the skill's body."""
    tools = "\n\n".join(tool.text for tool in prompts.tools)
    body = skill_body(skill.text)
    return f"{prompts.system}\n\n# Tools\n\n{tools}\n\n# Strategy for this task type\n\n{body}"


def opening_text(question: PublicQuestion, overview: str) -> str:
    """The first user message: question, labelled options, top level of the tree."""
    return f"{question_block(question)}\n\nVideo tree, top level:\n{overview}"


def opening_messages(
    prompts: Prompts, skill: Skill, question: PublicQuestion, overview: str
) -> list[ChatMessage]:
    """The conversation as it begins."""
    return [
        ChatMessage(role="system", content=system_text(prompts, skill)),
        ChatMessage(role="user", content=opening_text(question, overview)),
    ]


def observation_text(step: int, max_steps: int, observation: str) -> str:
    """What a step brought, with the budget."""
    return f"Step {step} of {max_steps}.\n{observation}"


def last_step_text(observation: str) -> str:
    """What the last step before the answer brought, and that the answer is due."""
    return f"Last step. {_ONLY_SUBMIT}\n\n{observation}"


def unreadable_text(problem: str, last: bool) -> str:
    """What to say to a reply that is no action. last: only an answer is allowed now."""
    form = 'Reply with one JSON object: {"thought": "...", "action": {"tool": "...", "args": {}}}'
    tail = f" {_ONLY_SUBMIT}" if last else ""
    return f"Your reply could not be read: {problem}. {form}.{tail}"
