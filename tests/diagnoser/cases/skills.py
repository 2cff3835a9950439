"""The skills of the cases: short, fixed, and silent about what the demo's lessons teach.

They are not the seed's own, which may become better at any time.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.documents import Skill
from protocol.keys import slug

__all__ = ["base_skill"]

_RULES: Mapping[str, tuple[str, ...]] = {
    "Counting Problem": (
        "Note what exactly is counted, and in which part of the video.",
        "Search for the counted thing by its own name, and try another name if nothing is found.",
        "Open the best hit and read its card for a number.",
        "Copy the number from the card into the evidence, as it stands there.",
        "Answer with the option that has this number.",
    ),
    "Temporal Reasoning": (
        "Find the event that the question starts from, and open the scene around it.",
        "Compare the start times: directly after means the event with the next start time.",
        "Search the subtitles when the question is about a time that people speak of.",
        "Work out durations step by step in the thought.",
    ),
    "Attribute Perception": (
        "Search for the thing and open at least one node before you answer.",
        "Claim only what the card says in so many words, and quote it in the evidence.",
        "Do not confuse a pattern with a colour.",
        "Answer with the option that names the property.",
    ),
    "OCR Problems": (
        "Decide where the text would be: a sign, a door, a board, a box.",
        "Search for that place and open its key frame.",
        "Compare the text of the card with the options, digit by digit for numbers.",
    ),
    "Action Recognition": (
        "Search for the person and the thing together.",
        "Read the event description and match its verb with the options.",
        "Do not mix up who gives and who takes.",
    ),
}


def base_skill(task_type: str, *more: str) -> Skill:
    """The class's skill, with more lines (Markdown bullets) below its own."""
    front = (
        f"---\nname: {slug(task_type)}\ndescription: How to answer a {task_type}.\n"
        f"task_type: {task_type}\n---\n"
    )
    rules = "\n".join([*(f"- {rule}" for rule in _RULES[task_type]), *more])
    return Skill(task_type=task_type, text=f"{front}# {task_type}\n\n## Rules\n\n{rules}\n")
