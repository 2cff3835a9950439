"""An endpoint that serves another model than was meant: the run stops, and goes on when mended."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from actors.ledger.reader import open_reader
from protocol.rows import EvaluationRow, StepRow
from tests.chaos.comparing import TINY
from tests.chaos.faults import endpoints, faulty, simulator
from tests.chaos.invariants import broken
from tests.system.runs import command, environment, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180), pytest.mark.anyio]


async def run(*arguments: str) -> tuple[int, str]:
    """Exit code and stderr."""
    done = await anyio.run_process(command(*arguments), env=environment(), check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("model", "told", "scored"),
    [
        ("twin-agent", "answers could not be read: the agent's replies are no actions", 0),
        ("twin-judge", "of the diagnoses are degraded", 1),
    ],
)
async def test_P1_4_P1_5_prose_teaches_nothing_and_is_not_replayed(
    tmp_path: Path, model: str, told: str, scored: int
) -> None:
    """P1-4, P1-5: nothing is scored or learnt, and the cache does not bring the prose back."""
    workspace = tmp_path / "run"
    with simulator() as target:
        async with faulty(target, share=0.0, seed=0) as proxy:
            proxy.garbled = {model}
            given = settings((*TINY, endpoints(proxy.base_url)))
            code, said = await run(*given, "--workspace", str(workspace))
            assert code == 1, said
            assert told in said
            with open_reader(workspace / "run.db") as reader:
                assert len(reader.rows(EvaluationRow)) == scored  # the seed's, before any step
                assert not reader.rows(StepRow)
            proxy.garbled.clear()
            code, said = await run("--resume", str(workspace), *given)
            assert code == 0, said
    assert broken(workspace) == []
