"""Versions of the documents, and the manifest that points at them."""

from __future__ import annotations

from typing import ClassVar

from protocol.base import Message, Refused, Request
from protocol.documents import Document, Package, PackageTexts, Skill

__all__ = [
    "GetManifest",
    "Manifest",
    "OpenPackage",
    "PromptsSaved",
    "SavePrompts",
    "SaveSkills",
    "SettingChange",
    "SkillsSaved",
    "UpdateManifest",
]


class SettingChange(Message, frozen=True, kw_only=True, tag=True):
    """A setting that decides results and was changed on purpose when a run was resumed.

    before, after: the values as text. after_epoch: the last epoch that was whole by then (0: none).
    """

    key: str
    before: str
    after: str
    after_epoch: int

    def __str__(self) -> str:
        when = f"after epoch {self.after_epoch}" if self.after_epoch else "in epoch 1"
        return f"{self.key}: {self.before} -> {self.after} {when}"


class Manifest(Message, frozen=True, kw_only=True, tag=True):
    """``manifest.json``: what is current, and what was best.

    epoch: the last epoch that is whole (0: none).
    *_sha256: what the run was begun with: the settings that decide results, the baseline's bytes,
    the bytes of every video tree. A resumed run must find them the same.
    changes: settings that were changed on the way and accepted by name, oldest first; the
    settings' fingerprint is that of the changed ones.
    """

    run_id: str
    seed_name: str
    settings_sha256: str
    baseline_sha256: str
    trees_sha256: str
    current: Package
    best_hard: Package
    best_mixed: Package
    epoch: int
    changes: tuple[SettingChange, ...] = ()


class GetManifest(Request[Manifest], frozen=True, kw_only=True, tag=True):
    """The manifest as it is on disk."""

    IDEMPOTENT: ClassVar[bool] = True


class UpdateManifest(Request[Manifest], frozen=True, kw_only=True, tag=True):
    """Replace the pointers, atomically (row P1-7)."""

    IDEMPOTENT: ClassVar[bool] = True

    current: Package
    best_hard: Package
    best_mixed: Package
    epoch: int


class OpenPackage(Request[PackageTexts | Refused], frozen=True, kw_only=True, tag=True):
    """The texts of a package."""

    IDEMPOTENT: ClassVar[bool] = True

    package: Package


class SkillsSaved(Message, frozen=True, kw_only=True, tag=True):
    """The version that holds the texts now."""

    version: str


class SaveSkills(Request[SkillsSaved], frozen=True, kw_only=True, tag=True):
    """Write a new skills version: the parent's files with these skills in their place.

    trigger: what made it (``epoch-2``). The same trigger with the same texts is the same
    version, so that a repeated request writes nothing.
    """

    IDEMPOTENT: ClassVar[bool] = True

    parent: str
    skills: tuple[Skill, ...]
    trigger: str


class PromptsSaved(Message, frozen=True, kw_only=True, tag=True):
    """The version that holds the texts now."""

    version: str


class SavePrompts(Request[PromptsSaved], frozen=True, kw_only=True, tag=True):
    """Write a new prompts version: the parent's files with these documents in their place.

    documents: by name: ``protocol.slow.SYSTEM`` or a tool's, which the parent must have.
    trigger: as of ``SaveSkills``.
    """

    IDEMPOTENT: ClassVar[bool] = True

    parent: str
    documents: tuple[Document, ...]
    trigger: str
