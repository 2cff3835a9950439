"""Every command line in the documents is typed into a shell and does what it is said to do.

They run one after the other in one house (``tests.docs.house``); those that cannot are named, with
the reason, in ``tests.docs.not_run``. The recipes of ``docs/logs.md`` run in
``tests/system/test_logs_recipes.py``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.check_house import served
from tests.docs.endpoint import talking
from tests.docs.house import House, opened
from tests.docs.not_run import NOT_RUN
from tests.docs.shell import mentions_in, scripts_in
from tests.docs.test_commands import DOCUMENTS, arguments_of, read, refusal

_READ = [name for name in DOCUMENTS if name.startswith(("README", "docs/"))]
_UNDER_WAY = ("bin/trm control ", "bin/trm watch ")
"""Lines about a run that goes on: they are typed while one does."""
_TOOLS = ("jq", "sqlite3")
"""Programs of others, which may not be here."""
_EXITS = {"bin/trm diff": 1}
"""What a line that begins so ends with, where that is not 0: as diff, that the texts differ."""


def scripts_of(name: str) -> list[tuple[str, str]]:
    """What can be typed, and where it stands; of the running text whole calls alone."""
    text = read(name)
    recipes = text.partition("```sh\n")[2].partition("```")[0] if name == "docs/logs.md" else ""
    found = [each for each in scripts_in(text) if each[1] not in recipes.splitlines()]
    found += [(one.line, " ".join(one.words)) for one in mentions_in(text) if whole(one.words)]
    return [(f"{name}:{number}", script) for number, script in sorted(found)]


def whole(words: tuple[str, ...]) -> bool:
    """Whether a call in running text can be typed: no mere name, no pattern, nothing left out."""
    arguments = arguments_of(words)
    if arguments is None or "[" in words[-1] or "..." in words:
        return False
    named = len(words) == 1 or (len(words) == 2 and not words[1].startswith("-"))
    return not named and not refusal(arguments)


def documented() -> dict[str, str]:
    """Every command line once, with the first place that has it."""
    found: dict[str, str] = {}
    for name in _READ:
        for place, script in scripts_of(name):
            found.setdefault(script, place)
    return found


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """With an endpoint that answers."""
    with (
        opened(tmp_path_factory.mktemp("house")) as made,
        served(talking(made.world, made.questions)) as endpoint,
    ):
        made.url = endpoint.url
        made.tidy()
        yield made


def lacking(script: str) -> bool:
    """Whether a program of others that it calls is not here."""
    called = {word for word in re.findall(r"[\w-]+", script) if word in _TOOLS}
    return any(shutil.which(tool) is None for tool in called)


def wrong_with(house: House, script: str) -> str:
    """Type it; what went wrong, else nothing."""
    typed = script.replace("http://10.0.0.5:8000/v1", house.url)
    if script.startswith("tail -f"):
        return "" if house.first_line(typed) else "it says nothing"
    done = house.run(typed)
    wanted = next((code for start, code in _EXITS.items() if script.startswith(start)), 0)
    if done.code == wanted and "Traceback" not in done.err:
        return ""
    return f"exit {done.code}\n{done.out[-1500:]}\n{done.err[-3000:]}"


@pytest.mark.timeout(600)  # about a minute of CPU, in many processes
def test_every_command_line_runs(house: House) -> None:
    """In the documents' order; a run is under way for those that speak to one."""
    found = {script: place for script, place in documented().items() if not lacking(script)}
    run = {script: place for script, place in found.items() if script not in NOT_RUN}
    failed: dict[str, str] = {}
    first = [script for script in run if script.startswith(_UNDER_WAY)]
    with under_way(house):
        for script in first:
            failed[script] = wrong_with(house, script)
    document = ""
    for script, place in run.items():
        if script in first:
            continue
        if place.partition(":")[0] != document:
            document = place.partition(":")[0]
            house.tidy()
        failed[script] = wrong_with(house, script)
    told = [f"{found[script]}: {script}\n{what}" for script, what in failed.items() if what]
    assert not told, "\n\n".join(told)
    assert len(failed) > 50, "the test would pass on nothing"


@contextmanager
def under_way(house: House) -> Iterator[None]:
    """A run of ``my.yaml`` that has begun; afterwards it is stopped, and can be resumed."""
    with house.begin("bin/train my.yaml") as process:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if "epoch.start" in line:
                break
        else:
            raise AssertionError("".join(told))
        yield
        done = house.run("bin/trm control workspaces/my-001 stop")
        assert done.code == 0, done.err
        process.communicate(timeout=60)
    assert process.returncode == 75


def test_the_table_is_of_the_documents() -> None:
    """No excuse for a command that no document has any more."""
    assert sorted(NOT_RUN.keys() - documented().keys()) == []


def test_scripts_are_told_from_text() -> None:
    """Loops and continued lines whole, without remarks; prose and output are none."""
    text = """
    for v in *.mp4; do
        bin/trm tree "$v" \\
            --out trees
    done
    Ctrl-C or SIGTERM      finish
    jq .a b.json | sort    a remark
    KEY=x bin/train        another

Say `bin/trm report DIR` or `bin/trm seed`.
"""
    assert [script for _, script in scripts_in(text)] == [
        'for v in *.mp4; do\nbin/trm tree "$v" --out trees\ndone',
        "jq .a b.json | sort",
        "KEY=x bin/train",
    ]


def test_a_wrong_command_is_seen(house: House, tmp_path: Path) -> None:
    """The house is no place where everything succeeds."""
    assert "no manifest.json" in wrong_with(house, f"bin/trm report {tmp_path}")
    assert "unrecognized arguments" in wrong_with(house, "bin/train my.yaml --chek")
    assert "exit 1" in wrong_with(house, "bin/trm answers < cases.jsonl | false")
