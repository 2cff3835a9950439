"""The parameters of the training: skills, the system prompt, tool prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from protocol.base import Message

__all__ = [
    "Document",
    "Package",
    "PackageTexts",
    "Prompts",
    "Skill",
    "library_hash",
    "text_hash",
]


def text_hash(text: str) -> str:
    """SHA-256 of the UTF-8 text, 64 hex digits: the identity of a document."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Document(Message, frozen=True, kw_only=True, tag=True):
    """A named text, such as one tool prompt; ``name`` is the file's stem."""

    name: str
    text: str


class Skill(Message, frozen=True, kw_only=True, tag=True):
    """The strategy document of one class; ``text`` is the whole file, front matter included.

    task_type is ``_default`` for the skill that serves classes without their own.
    """

    task_type: str
    text: str

    @property
    def hash(self) -> str:
        """Content identity, the ``skill_hash`` of every key (row P1-1a)."""
        return text_hash(self.text)


def library_hash(skill: Skill, others: Sequence[Skill]) -> str:
    """Identity of a class's skill together with the others that an agent may read in its place."""
    parts = [skill.hash, *sorted(f"{other.task_type} {other.hash}" for other in others)]
    return text_hash("\n".join(parts))


class Prompts(Message, frozen=True, kw_only=True, tag=True):
    """One version of the agent's system prompt and tool prompts."""

    version: str
    system: str
    tools: tuple[Document, ...]


class Package(Message, frozen=True, kw_only=True, tag=True):
    """What is trained and compared: a skills version and a prompts version."""

    skills: str
    prompts: str

    def __str__(self) -> str:
        return f"skills/{self.skills}+prompts/{self.prompts}"


class PackageTexts(Message, frozen=True, kw_only=True, tag=True):
    """A package with its texts."""

    package: Package
    skills: tuple[Skill, ...]
    prompts: Prompts

    def skill_for(self, task_type: str) -> Skill:
        """The class's own skill, else ``_default``.

        Raises KeyError naming the class if the package has neither.
        """
        by_type = {skill.task_type: skill for skill in self.skills}
        for wanted in (task_type, "_default"):
            if wanted in by_type:
                return by_type[wanted]
        raise KeyError(f"package {self.package} has no skill for {task_type!r} and no _default")

    def others(self, skill: Skill) -> tuple[Skill, ...]:
        """The skills of the other classes, in the package's order."""
        return tuple(other for other in self.skills if other.task_type != skill.task_type)

    def with_skill(self, skill: Skill) -> PackageTexts:
        """The same package with another text for one class; a class without its own gets one."""
        mine = {other.task_type: other for other in self.skills} | {skill.task_type: skill}
        return msgspec.structs.replace(self, skills=tuple(mine.values()))
