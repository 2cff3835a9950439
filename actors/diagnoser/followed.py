"""Which skill an answer was given under: the class's, or the one that the agent chose. Pure.

With ``agent.skill_routing: manual`` the agent picks a skill with ``read_skill``, and what it read
stands in its trajectory. A judge who held it against a skill that it never saw would call every
rule of that skill a lapse.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from protocol.rollout import Step

__all__ = ["READ_SKILL", "Shown", "shown_skill"]

READ_SKILL = "read_skill"
_NOT_READ = frozenset({"bad_call", "refused", "forced"})  # forced: it was not run
_NONE_READ = "(The agent read no skill.)"


class Shown(msgspec.Struct, frozen=True):
    """What the judge is shown as the skill.

    rules: the text that a rule may be quoted from. own: it is the skill of the question's class,
    so that a verdict on it is a verdict on the skill that is trained.
    """

    text: str
    rules: str
    own: bool


def shown_skill(skill_text: str, steps: Sequence[Step], *, manual: bool) -> Shown:
    """The skill that was followed: the last one that was read; else what the prompt held.

    skill_text: of the question's class, front matter and all. manual: the agent had to choose.
    """
    read = [
        step.observation.strip()
        for step in steps
        if step.tool == READ_SKILL and not _NOT_READ.intersection(step.flags)
    ]
    bodies = [body for body in read if body]
    if bodies:
        if skill_text.rstrip().endswith(bodies[-1]):
            return Shown(skill_text, skill_text, own=True)
        return Shown(bodies[-1], bodies[-1], own=False)
    if manual:
        return Shown(_NONE_READ, "", own=False)
    return Shown(skill_text, skill_text, own=True)
