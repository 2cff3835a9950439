"""The command lines of the documents that the tests do not run, each with its reason.

A line stands here as it is typed. One that no document has any more fails a test.
"""

from __future__ import annotations

__all__ = ["NOT_RUN"]

_HOURS = "a benchmark of minutes to hours; a short one of it is in tests/bench"
_MINUTES = "many worlds; four of them run in docs/honesty.md"
_WHOLE = (
    "the benchmark run; tests/system/test_launcher.py has the launcher, the runbook's part runs"
)

NOT_RUN: dict[str, str] = {
    "bin/test": "runs all tests, this one too",
    "bin/train --aa 100": "as --aa 20 of the runbook, which runs, five times as long",
    "bin/train my.yaml --aa 100": "as --aa 20 of the runbook, which runs, five times as long",
    "trm train config/train_videomme.yaml": _WHOLE,
    "tmux new -s videomme 'bin/train-videomme'": _WHOLE,
    "pip install --require-hashes -r requirements/bench.txt": "loads packages from the network",
    "tensorboard --logdir workspaces": "TensorBoard's own viewer, which is no part of this",
    "bin/trm replay --planted study": _MINUTES,
    "bin/trm replay --planted study --runs 100 --profile balanced --profile growth": _MINUTES,
    "bin/trm replay --planted twin --runs 100": _MINUTES,
    "python -m tests.bench.chat_clients --streams 256,1024": _HOURS,
    "python -m tests.bench.gate_training --rows strict.json --rows gate.json --write docs": _HOURS,
    "python -m tests.bench.gate_training --rule strict --seeds 400 --json > strict.json": _HOURS,
    "python -m tests.bench.gate_training --seeds 100": _HOURS,
    "python -m tests.bench.gate_training --seeds 100 --slow-seeds 30 --write docs": _HOURS,
    "python -m tests.bench.scale": _HOURS,
    "python -m tests.bench.scale --epochs 1 --chunk-delay 0.2": _HOURS,
    "python -m tests.bench.scale --times 10 --epochs 1": _HOURS,
}
