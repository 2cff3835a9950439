"""A workspace's settings on disk: ``config.yaml``, whose fingerprint stands in the manifest.

A resume may change settings. Two files cannot be replaced at one instant, so that the new
settings are put beside the old ones first; the manifest, replaced next, says which of the two
are the run's; then they take their place. Whenever the process dies, the next resume finds one
whole set of settings.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from actors.config import ConfigError, dump_config, load_config, subject_of
from actors.workspace.atomic import write_atomic
from actors.workspace.manifest import write_manifest
from protocol.settings import Config
from protocol.workspace import Manifest

__all__ = ["CONFIG", "begun_with", "finish_settings", "put_settings", "settings_sha256"]

CONFIG = "config.yaml"
_NEXT = "config.next.yaml"


def settings_sha256(config: Config) -> str:
    """Fingerprint of what makes it this run: pace and place do not."""
    return hashlib.sha256(msgspec.json.encode(subject_of(config), order="sorted")).hexdigest()


def begun_with(workspace: Path, manifest: Manifest) -> Config:
    """The run's own settings. Raises ConfigError if they are others than they were."""
    for name in (CONFIG, _NEXT):
        if name == CONFIG or (workspace / name).is_file():
            stored = load_config(workspace / name)
            if settings_sha256(stored) == manifest.settings_sha256:
                return stored
    raise ConfigError(
        [
            f"{workspace / CONFIG}: is not what the run was begun with (its settings have "
            "another fingerprint than manifest.json says)",
            "Restore the file; to change a setting, give --set KEY=VALUE --accept-change KEY",
        ]
    )


def finish_settings(workspace: Path, manifest: Manifest) -> None:
    """Do what a resume that died had left to do: put the settings in place that the manifest names.

    Does nothing where ``begun_with`` would raise: nothing is guessed. Raises as ``load_config``.
    """
    told = workspace / _NEXT
    if not told.is_file():
        return
    if settings_sha256(load_config(workspace / CONFIG)) == manifest.settings_sha256:
        told.unlink()  # the manifest was never replaced: the change was not made
    elif settings_sha256(load_config(told)) == manifest.settings_sha256:
        write_atomic(workspace / CONFIG, told.read_bytes())
        told.unlink()


def put_settings(workspace: Path, config: Config, before: Manifest, after: Manifest) -> None:
    """Write the settings of a run that goes on, and the manifest if it changed with them."""
    told = dump_config(config).encode()
    if after != before:
        write_atomic(workspace / _NEXT, told)
        write_manifest(workspace, after)
    write_atomic(workspace / CONFIG, told)
    (workspace / _NEXT).unlink(missing_ok=True)
