"""The demo's baseline: one pass of the agent over every question, with the simulator.

Deterministic like the rest of the demo: the same documents, questions and world give the same
bytes. Overwrites baseline.db, pools.json, split_manifest.json and seed.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import anyio

from actors.commands.seeding import make_seed
from actors.config import load_config
from actors.logs import configure_logs
from actors.system import Paths
from protocol.seed import SplitParameters

__all__ = ["build_baseline"]

_TOOL_VERSION = "demo_builder 1"
_PARAMETERS = SplitParameters(
    seed=20260716, n_trainval=80, n_test=40, val_ratio=0.4, val_wrong_min=20
)


def build_baseline(out: Path) -> None:
    """Complete the seed in ``out``, which holds the builder's other files."""
    config = load_config(None, ["runtime.drain_s=1"])
    configure_logs(None, "warning", None)
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Path(scratch)
        (workspace / "logs").mkdir()
        paths = Paths(
            workspace=workspace,
            questions=out / "questions.jsonl",
            trees=out / "trees",
            world=out / "world.json",
        )

        async def make() -> None:
            report = await make_seed(
                config,
                paths,
                out,
                name="demo",
                baseline_run_id="demo-baseline",
                parameters=_PARAMETERS,
                subtitles=True,
                tool_version=_TOOL_VERSION,
            )
            for pool in report.pools:
                sys.stdout.write(
                    f"{pool.pool}: {pool.videos} videos, {pool.questions} questions, "
                    f"{pool.wrong} wrong\n"
                )

        anyio.run(make)
    for replaced in out.glob("*.bak.*"):
        replaced.unlink()  # the former files are in the version control, beside the new ones


def _main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m seeds.demo_builder.baseline",
        description=(
            "Completes a demo seed: answers every question once with the simulator, diagnoses the "
            "wrong answers, splits. Overwrites baseline.db, pools.json, split_manifest.json and "
            "seed.json in DIR; the same files and code give the same bytes."
        ),
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="such as seeds/demo")
    build_baseline(parser.parse_args().out.resolve())


if __name__ == "__main__":
    _main()
