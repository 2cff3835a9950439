"""What the agent reads: the request layout of the search role. Pure.

Everything is built from a ``PublicQuestion``, which has neither the gold answer nor the
question id: neither can leak, because neither is here. With ``skill_routing: manual`` the
question's class is not shown either: it is the benchmark's label, and would choose for the agent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from actors.rollout.library import Library, library_of, skill_body
from actors.rollout.tools import TOOLS, ToolName, form_of
from prompts.question import question_block
from prompts.trajectory import clip
from protocol.dataset import PublicQuestion
from protocol.documents import Prompts, Skill
from protocol.llm import ChatMessage
from protocol.rollout import ForcedBy

__all__ = [
    "Material",
    "last_notice",
    "observation_text",
    "opening_messages",
    "opening_text",
    "repeated_remark",
    "stub_text",
    "system_text",
    "unreadable_text",
]

_STRATEGY = "# Strategy for this task type"
_STRATEGIES = """\
# Strategies

For each kind of question there is a written strategy. Decide which kind this question is, read
that strategy with read_skill before you look into the video, and follow it. The names, and what
each is for:

"""
_FORMAT_SECTION = re.compile(
    r"^(?P<level>#{1,6})[ \t]+Output format[ \t]*\r?\n.*?(?=^#{1,6}[ \t]|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_NATIVE_FORMAT = """\
Call exactly one tool per reply, as a tool call of this conversation and not as text. Beside the
call, say in one to three short sentences what you know and what you look for next. The result
comes with the next message; the conversation ends with `submit_answer`.

"""
_JSON_FORM = 'Reply with one JSON object: {"thought": "...", "action": {"tool": "...", "args": {}}}'
_NATIVE_FORM = "Call one of the tools, as a tool call and not as text"
_ONLY_SUBMIT = "Call submit_answer now, with the best answer that you have; no other tool runs."
_WHY_LAST: dict[ForcedBy, str] = {
    "": "",
    "steps": "Your steps are used up. ",
    "tokens": "Your tokens are used up. ",
    "time": "Your time is used up. ",
    "context": "There is no room for another observation. ",
}
_STUB_CHARS = 200


class Material(msgspec.Struct, frozen=True):
    """The documents of an attempt. tools: those that are offered. manual: see the module."""

    prompts: Prompts
    skill: Skill
    others: tuple[Skill, ...]
    tools: tuple[ToolName, ...]
    manual: bool
    native: bool

    @property
    def library(self) -> Library:
        """What can be chosen from; empty where nothing is."""
        return library_of((self.skill, *self.others) if self.manual else ())


def system_text(material: Material) -> str:
    """The system message: system prompt, a document per offered tool, the skill or a choice."""
    prompts = material.prompts
    system = _with_native_format(prompts.system) if material.native else prompts.system
    tools = "\n\n".join(_tool_texts(material))
    if material.manual:
        strategy = f"{_STRATEGIES}{material.library.catalogue}"
    else:
        strategy = f"{_STRATEGY}\n\n{skill_body(material.skill.text)}"
    return f"{system}\n\n# Tools\n\n{tools}\n\n{strategy}"


def opening_text(question: PublicQuestion, overview: str, budget: str, *, manual: bool) -> str:
    """The first user message: question, labelled options, top level of the tree, budget."""
    block = question_block(question, task_type=not manual)
    return f"{block}\n\nVideo tree, top level:\n{overview}\n\n{budget}"


def opening_messages(
    material: Material, question: PublicQuestion, overview: str, budget: str
) -> list[ChatMessage]:
    """The conversation as it begins."""
    first = opening_text(question, overview, budget, manual=material.manual)
    return [
        ChatMessage(role="system", content=system_text(material)),
        ChatMessage(role="user", content=first),
    ]


def observation_text(notice: str, observation: str) -> str:
    """What a step brought, below what else there is to say."""
    return f"{notice}\n{observation}"


def last_notice(forced_by: ForcedBy) -> str:
    """That only an answer is taken now, and why."""
    return f"Last step. {_WHY_LAST[forced_by]}{_ONLY_SUBMIT}"


def repeated_remark(step: int, unopened: str | None) -> str:
    """To a call that was made before. unopened: a node that it showed and nobody has opened."""
    said = f"You made this very call in step {step}, and it brings nothing new."
    if unopened is None:
        return f"{said} Do something else, or answer."
    return f"{said} Open what it showed with view_node, such as {unopened}, or answer."


def stub_text(step: int, tool: str, arguments: str) -> str:
    """In the place of an observation that was left out."""
    call = f"{tool} {clip(' '.join(arguments.split()), _STUB_CHARS)}"
    return f"Step {step}: {call} (left out here to save room; call it again if you need it)"


def unreadable_text(problem: str, *, last: bool, native: bool) -> str:
    """What to say to a reply that is no action. last: only an answer is allowed now."""
    form = _NATIVE_FORM if native else _JSON_FORM
    tail = f" {_ONLY_SUBMIT}" if last else ""
    return f"Your reply could not be read: {problem}. {form}.{tail}"


def _tool_texts(material: Material) -> Sequence[str]:
    """Documents of tools that are not offered are left out; one that lacks gets its form."""
    texts = {document.name: document.text for document in material.prompts.tools}
    mine = [texts.get(tool, f"# Tool: {tool}\n\n{form_of(tool)}.\n") for tool in material.tools]
    others = [text for name, text in sorted(texts.items()) if name not in TOOLS]
    return [text.rstrip("\n") for text in (*mine, *others)]


def _with_native_format(system: str) -> str:
    """The section on the output format speaks of JSON: its place is taken."""
    replaced, count = _FORMAT_SECTION.subn(
        lambda found: f"{found['level']} Output format\n\n{_NATIVE_FORMAT}", system, count=1
    )
    return replaced if count else f"{system}\n\n## Output format\n\n{_NATIVE_FORMAT}".rstrip("\n")
