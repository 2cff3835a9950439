"""The console's lines: short, for people; the file keeps what they leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from actors.log_lines import for_console
from actors.logs import configure_logs

AT = {"timestamp": "2026-01-02T03:04:05.678901Z", "level": "info", "run_id": "demo-0123abcd"}
PLACE = {"epoch": 1, "step": 2, "class": "Attribute Perception", "actor": "trainer"}
PACKAGE = "skills/v12+prompts/v12"
WIDEST = 126  # with the longest class of the demo; most are shorter by a dozen

COMMON: dict[str, dict[str, object]] = {
    "epoch.start": {"package": PACKAGE},
    "epoch.done": {
        "package": PACKAGE, "best": PACKAGE, "tests": 10, "accepted": 5, "sum_alpha": 0.4,
        "seed_draws": 10, "epochs_since_best_improved": 0,
    },
    "evaluation.done": {
        "pool": "val", "kind": "slow_candidate", "package": PACKAGE, "planned": 90, "right": 67,
        "missing": 2, "accuracy": 0.7444, "interval": [0.6456, 0.8233],
    },
    "gate.decision": {
        "run_key": "e1/attribute-perception/s2", "verdict": "accept", "reason": "endgame",
        "wins": 12, "losses": 1, "units": "18/18", "missing": 0, "e": 47.2392, "p_gate": 0.0024,
        "alpha": 0.2, "lower_bound": 0.1312,
    },
    "step.done": {
        "right": 4, "planned": 10, "missing": 1, "defects": 6, "lapses": 2, "degraded": 1,
        "editor_calls": 1, "unreadable": 0, "result": "undecided",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Logging is global: leave it as it was."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def shown(event: str, **fields: object) -> str:
    """The line as it is printed."""
    render = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, sort_keys=False)
    return str(render(None, "", for_console(AT | {"event": event} | fields)))


@pytest.mark.parametrize("event", COMMON)
def test_a_common_line_fits(event: str) -> None:
    """It is words: nothing of what every line has, and no name of a field."""
    own = PLACE if event in ("gate.decision", "step.done") else {"epoch": 3, "actor": "trainer"}
    line = shown(event, **own, **COMMON[event])
    assert len(line) <= WIDEST, line
    assert line.startswith(f"03:04:05 {event}")
    assert not {"=", "actor", "info", "demo-"} & set(line.replace(" = ", " ").split())
    assert "trainer" not in line


def test_a_decision_in_words() -> None:
    """As docs/logs.md shows it."""
    fields = COMMON["gate.decision"] | {
        "wins": 6, "losses": 2, "units": "11/11", "e": 5.76, "p_gate": 0.0572,
        "lower_bound": -0.0536,
    }  # fmt: skip
    line = shown("gate.decision", **(PLACE | {"class": "Temporal Reasoning"}), **fields)
    assert line == (
        "03:04:05 gate.decision   e1 s2 Temporal Reasoning: accept (endgame); 6 won, 2 lost of "
        "11/11, e 5.76, p 0.0572, gain >= -5%"
    )
    documented = (Path(__file__).parents[1] / "docs" / "logs.md").read_text(encoding="utf-8")
    assert line[len("03:04:05") :] in documented


def test_other_events_keep_their_fields_short() -> None:
    """Floats by four digits, hashes by their beginning, unknown ones left out."""
    line = shown("some.event", **PLACE, p=0.123456, none=None, sha="ab" * 32, pairs=3)
    assert line == (
        "03:04:05 some.event      e1 s2 Attribute Perception p=0.1235 sha=abababababab.. pairs=3"
    )


def test_trouble_tells_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who failed stands in a warning; the file has every field of every event as it was."""
    path = tmp_path / "train.jsonl"
    file = configure_logs(path, "info", "run-1")
    log = structlog.get_logger()
    log.warning("actor.restarting", actor="gate", restart=1)
    log.info("gate.decision", actor="trainer", **COMMON["gate.decision"])
    assert file is not None
    file.close()
    trouble, decision = capsys.readouterr().err.splitlines()
    assert "[warning" in trouble
    assert "actor=gate" in trouble
    assert "actor" not in decision
    kept = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert COMMON["gate.decision"].items() <= kept.items()
    assert (kept["actor"], kept["level"], kept["run_id"]) == ("trainer", "info", "run-1")
