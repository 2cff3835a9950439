"""The options that name a run: those of ``bin/train``, and of ``bin/trm check``."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["LATEST", "add_run_options"]

LATEST = Path()
"""What ``--resume`` without a folder stands for; this very object, since ``.`` is a folder."""


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Configuration, overrides, and the workspace: a new one, or one to go on with."""
    parser.add_argument(
        "config",
        nargs="?",
        type=Path,
        metavar="CONFIG",
        help="YAML with what differs from config/default.yaml (default: config/demo.yaml)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="assignments",
        help="override one key, such as trainer.epochs=5; may be given several times",
    )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="where to write; must not exist (default: the next free number in run.workspaces)",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        type=Path,
        const=LATEST,
        metavar="DIR",
        help="go on with a workspace (default: the latest one of run.name)",
    )
    parser.add_argument(
        "--accept-change",
        action="append",
        default=[],
        metavar="KEY",
        help="resume although this key differs from the workspace's config.yaml",
    )
