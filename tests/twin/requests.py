"""The editor's five later requests, written with the project's own templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache

from actors.twin.wire import Turn
from prompts.templates import Template, load_templates
from tests.twin.conversations import DEMO

__all__ = [
    "compact_turns",
    "document_turns",
    "momentum_turns",
    "prompt_text",
    "rank_turns",
]

_NAMES = (
    "evolve_rank",
    "consolidate_appendix",
    "slow_momentum",
    "evolve_system",
    "evolve_tool",
)


@cache
def _templates() -> Mapping[str, Template]:
    return load_templates(_NAMES)


def _filled(name: str, **values: str) -> tuple[Turn, ...]:
    """The request; what a template asks for beside the layout's own blocks is filled with dots."""
    template = _templates()[name]
    assert values.keys() <= template.placeholders
    return (Turn("user", template.fill(**({key: "…" for key in template.placeholders} | values))),)


def prompt_text(name: str) -> str:
    """The seed's system prompt, or a tool's."""
    path = "system.md" if name == "system" else f"tools/{name}.md"
    return (DEMO / "prompts" / "v1" / path).read_text(encoding="utf-8")


def rank_turns(
    skill: str, edits: Sequence[tuple[str, str, str, int]], choose: int
) -> tuple[Turn, ...]:
    """edits: op, target, content, support."""
    lines = [
        f"{number}. {op} {json.dumps(target)} -> {json.dumps(content)} (support: {support})"
        for number, (op, target, content, support) in enumerate(edits, 1)
    ]
    return _filled("evolve_rank", skill=skill, choose=str(choose), candidates="\n".join(lines))


def compact_turns(skill: str, notes: Sequence[str], most: int) -> tuple[Turn, ...]:
    """Notes of an appendix that grew too long."""
    lines = "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))
    return _filled("consolidate_appendix", skill=skill, most_notes=str(most), notes=lines)


def momentum_turns(
    skill: str, compared: Sequence[tuple[str, str]], *, chars: int = 1500, tag: str = ""
) -> tuple[Turn, ...]:
    """compared: question id and change. tag: makes requests differ."""
    cases = "\n\n".join(f"Case {name} [{change}]\n  Question: {tag}" for name, change in compared)
    return _filled("slow_momentum", skill=skill, momentum_chars=str(chars), compared=cases)


def document_turns(
    name: str,
    cases: Sequence[tuple[str, str]],
    *,
    text: str | None = None,
    budget: int = 2,
    rejected: str = "none",
    tag: str = "",
) -> tuple[Turn, ...]:
    """cases: question id and habit, or ``failing`` and ``good``. text: None: the seed's."""
    shown = "\n\n".join(f"Case {case} [{kind}]\n  Question: {tag}" for case, kind in cases)
    return _filled(
        "evolve_system" if name == "system" else "evolve_tool",
        document=name,
        text=prompt_text(name) if text is None else text,
        edit_budget=str(budget),
        growth_chars="2000",
        cases=shown,
        rejected=rejected,
    )
