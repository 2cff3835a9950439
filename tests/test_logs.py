"""Log lines: JSON in the file, readable on the console, secrets in neither."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from actors.logs import configure_logs, masked


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Logging is global: leave it as it was."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_event_is_a_json_line_with_its_context(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has the whole stamp and the run id; the console the time of day."""
    path = tmp_path / "train.jsonl"
    file = configure_logs(path, "info", "run-1")
    with structlog.contextvars.bound_contextvars(**{"epoch": 2, "class": "Counting Problem"}):
        structlog.get_logger().info("step.done", right=7, note="naïve\nline")
        structlog.get_logger().debug("too.fine")
    assert file is not None
    file.close()
    (event,) = _lines(path)
    assert event["event"] == "step.done"
    assert (event["run_id"], event["epoch"], event["class"]) == ("run-1", 2, "Counting Problem")
    assert (event["right"], event["note"], event["level"]) == (7, "naïve\nline", "info")
    console = capsys.readouterr().err
    assert "step.done" in console
    assert "run-1" not in console


def test_secrets_pass_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys and credentials in addresses are masked, in the file and on the console."""
    path = tmp_path / "train.jsonl"
    file = configure_logs(path, "info", None)
    structlog.get_logger().info(
        "llm.open", api_key="sk-very", Authorization="Bearer sk-very", url="redis://me:sk-very@h/0"
    )
    assert file is not None
    file.close()
    assert "sk-very" not in path.read_text(encoding="utf-8")
    assert "sk-very" not in capsys.readouterr().err


def test_an_exception_is_one_line_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A traceback never breaks the format; the console shows it too."""
    path = tmp_path / "train.jsonl"
    file = configure_logs(path, "info", None)
    try:
        raise LookupError("gone")
    except LookupError:
        structlog.get_logger().exception("actor.crashed")
    assert file is not None
    file.close()
    (event,) = _lines(path)
    assert "LookupError: gone" in str(event["exception"])
    assert "LookupError: gone" in capsys.readouterr().err


def test_a_full_disk_loses_lines_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Logging never raises: the loss is told once, the events still reach the console."""
    file = configure_logs(Path("/dev/full"), "info", None)
    structlog.get_logger().info("first.event")
    structlog.get_logger().info("second.event")
    console = capsys.readouterr().err
    assert console.count("lines are lost") == 1
    assert "second.event" in console
    assert file is not None
    with pytest.raises(OSError, match="No space"):
        file.close()


def test_a_closed_console_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``bin/train 2>&1 | head`` must not end the run."""
    path = tmp_path / "train.jsonl"
    file = configure_logs(path, "info", None)
    with (tmp_path / "gone").open("w") as gone:
        pass
    monkeypatch.setattr("sys.stderr", gone)
    structlog.get_logger().info("still.logged")
    assert file is not None
    file.close()
    assert [event["event"] for event in _lines(path)] == ["still.logged"]


def test_secrets_pass_nowhere_however_deep_they_lie() -> None:
    """In lists and mappings too; the name of a variable that holds a key is none."""
    told = {
        "endpoints": [{"api_key": "sk-very", "base_url": "http://me:sk-very@h/v1"}],
        "llm": {"api_key_env": "MY_KEY", "password": None, "prompt_tokens": 7},
    }
    assert masked("config", told) == {
        "endpoints": [{"api_key": "***", "base_url": "http://***@h/v1"}],
        "llm": {"api_key_env": "MY_KEY", "password": None, "prompt_tokens": 7},
    }


def test_who_listens_hears_what_the_level_keeps_out_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress can be summed at any log level; what is said twice is not shown twice."""
    heard: list[object] = []
    path = tmp_path / "train.jsonl"
    file = configure_logs(path, "warning", None, hear=lambda event: heard.append(event["event"]))
    log = structlog.get_logger()
    log.debug("not.this")
    log.info("llm.call")
    log.warning("llm.breaker_open", repeated=True)
    log.warning("heartbeat", line="still waiting", calls=3)
    assert file is not None
    file.close()
    assert heard == ["llm.call", "llm.breaker_open", "heartbeat"]
    assert [event["event"] for event in _lines(path)] == ["llm.breaker_open", "heartbeat"]
    console = capsys.readouterr().err
    assert console.split()[1:] == ["[warning", "]", "still", "waiting"]
