"""Settings that a resumed run has other than it began with: each is accepted by name, and kept.

Pure; the manifest keeps them, since config.yaml holds the latest values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from actors.config import ConfigError
from actors.logs import masked
from protocol.workspace import SettingChange

__all__ = ["accepted_lines", "changes_words", "setting_changes"]

_MOST = 80  # characters of a value; only llm.endpoints is longer

Changed = tuple[str, object, object]
"""Key, old value, new value, as of ``changed_keys``."""


def accepted_lines(
    workspace: Path, changed: Sequence[Changed], accept: Sequence[str]
) -> tuple[str, ...]:
    """The changes in words. Raises ConfigError for one that was not accepted, or never made."""
    lines = {key: f"{key}: {old!r} -> {new!r}" for key, old, new in changed}
    refused = [key for key in lines if key not in accept]
    if refused:
        flags = " ".join(f"--accept-change {key}" for key in refused)
        raise ConfigError(
            [
                f"{workspace} was begun with other settings:",
                *(f"  {lines[key]}" for key in refused),
                f"Take them back, or accept each of them: {flags}",
            ]
        )
    unknown = sorted(set(accept) - lines.keys())
    if unknown:
        raise ConfigError([f"--accept-change {key}: does not differ" for key in unknown])
    return tuple(lines[key] for key in accept)


def setting_changes(changed: Sequence[Changed], epoch: int) -> tuple[SettingChange, ...]:
    """What is kept of them, for whoever reads the result. epoch: the last that is whole."""
    return tuple(
        SettingChange(key=key, before=_text(key, old), after=_text(key, new), after_epoch=epoch)
        for key, old, new in changed
    )


def _text(key: str, value: object) -> str:
    """The value for a line that may be published: no secret, and not a page of it."""
    text = repr(masked(key, value))
    return text if len(text) <= _MOST else f"{text[: _MOST - 2]}.."


def changes_words(changes: Sequence[SettingChange]) -> str:
    """All of them in one line; empty: none was made."""
    if not changes:
        return ""
    return f"Settings changed on the way: {'; '.join(map(str, changes))}."
