"""Every command line in the documents is one that the program takes; the files it names are there.

Nothing is run: what a command does has tests of its own.
"""

from __future__ import annotations

import importlib.util
import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from actors.main import COMMANDS, build_parser
from actors.places import ROOT
from tests.docs.shell import Command, commands_in, mentions_in, simple_commands

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "seeds" / "demo" / "README.md")
    if path.name != "CHANGELOG.md"  # tells of what was
)
BRINGS = ("config/", "seeds/demo", "tests/", "docs/", "requirements/", "prompts/evolve")
"""What a path in a command begins with if the checkout brings it along."""


def read(name: str) -> str:
    """A document's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def arguments_of(words: tuple[str, ...]) -> list[str] | None:
    """The arguments of ``actors.main``; None for another program of ours."""
    program, *rest = words
    if program == "bin/train":
        return ["train", *rest]
    if program == "bin/train-videomme":
        return ["train", "config/train_videomme.yaml", *rest]
    return rest if program in ("bin/trm", "trm") else None


def refusal(arguments: list[str]) -> str:
    """What the parser says against the arguments; empty: nothing."""
    said = io.StringIO()
    command = arguments[0] if arguments else ""
    if command and not command.startswith("-") and command not in COMMANDS:
        return f"there is no command {command!r}"
    try:
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            build_parser(command).parse_args(arguments)
    except SystemExit as ended:
        if ended.code:
            return said.getvalue().strip().splitlines()[-1]
    return ""


def unknown_options(words: tuple[str, ...]) -> list[str]:
    """Options that the command's own --help does not name: no abbreviations in documents."""
    arguments = arguments_of(words) or []
    command = [word for word in arguments[:1] if word in COMMANDS]
    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit):
        build_parser(*command).parse_args([*command, "--help"])
    options = [word.partition("=")[0] for word in arguments if re.match(r"--[a-z]", word)]
    known = set(re.findall(r"--[a-z][a-z-]*", said.getvalue()))
    return [option for option in options if option not in known]


def missing_files(words: tuple[str, ...]) -> list[str]:
    """Paths that the checkout should have."""
    paths = [word for word in words[1:] if word.startswith(BRINGS)]
    return [path for path in (*paths, *words[:1]) if "/" in path and not (ROOT / path).exists()]


def problems(command: Command, *, whole: bool) -> list[str]:
    """Everything that is wrong with a call. whole: it must have all that it needs."""
    words = command.words
    if words[0] == "python":
        if len(words) < 3 or words[1] != "-m" or importlib.util.find_spec(words[2]) is None:
            return [f"there is no module to run in {' '.join(words)}"]
        return missing_files(words)
    arguments = arguments_of(words)
    found = missing_files(words)
    if arguments is None:  # bin/test
        return found
    if whole:
        found += [said for said in [refusal(arguments)] if said]
    elif arguments and re.match("[a-z]", arguments[0]) and arguments[0] not in COMMANDS:
        found.append(f"there is no command {arguments[0]!r}")
    return found or [f"unknown option {option}" for option in unknown_options(words)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_of_a_document(name: str) -> None:
    """In code blocks whole, in running text as far as they go."""
    text = read(name)
    wrong = [
        f"{name}:{command.line}: {' '.join(command.words)}: {problem}"
        for found, whole in ((commands_in(text), True), (mentions_in(text), False))
        for command in found
        for problem in problems(command, whole=whole)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_a_help(command: str) -> None:
    """The lines that --help offers for copying."""
    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit):
        build_parser(command).parse_args([command, "--help"])
    lines = re.sub(r" \\\n\s*", " ", said.getvalue()).splitlines()
    lines = [line.strip() for line in lines if re.match(r"\s+(?:echo .*\| )?bin/", line)]
    found = [words for line in lines for words in simple_commands(line)]
    assert found, "an example is asked for"
    wrong = {
        " ".join(words): told
        for words in found
        if "..." not in words
        for told in problems(Command(0, words), whole=True)
    }
    assert not wrong


def test_the_documents_are_read() -> None:
    """The tests above would pass on nothing."""
    texts = [read(name) for name in DOCUMENTS]
    calls = [command.words for text in texts for command in commands_in(text)]
    mentioned = [command.words for text in texts for command in mentions_in(text)]
    named = {words[1] for words in calls + mentioned if words[0] == "bin/trm" and len(words) > 1}
    assert len(calls) > 50
    assert set(COMMANDS) - named <= {"train"}, "a command that no document shows"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("bin/train      trains the demo: no key", [("bin/train",)]),
        (
            'bin/trm gate "WW  T" --alpha 0.1   what',
            [("bin/trm", "gate", "WW  T", "--alpha", "0.1")],
        ),
        ("bin/trm answers < cases.jsonl", [("bin/trm", "answers")]),
        ("tmux new -s v 'bin/train-videomme'", [("bin/train-videomme",)]),
        ("REDIS_URL=x bin/train a.yaml", [("bin/train", "a.yaml")]),
        ("echo '[]' | bin/trm patch a.md - | jq .x", [("bin/trm", "patch", "a.md", "-")]),
        ("for v in *.mp4; do bin/trm tree $v; done", [("bin/trm", "tree", "$v")]),
        ("bin/train a.yaml --check --json 2> b >c", [("bin/train", "a.yaml", "--check", "--json")]),
        ("cat bin/trm", [("bin/trm",)]),
        ("ls workspaces", []),
    ],
)
def test_lines_are_taken_apart(line: str, found: list[tuple[str, ...]]) -> None:
    """As a shell would, remarks in the margin left out."""
    assert list(simple_commands(line)) == found


def test_what_is_wrong_is_seen() -> None:
    """A made-up document with one mistake of each kind."""
    text = """
    bin/trm gate                      no blocks
    bin/trm gate WW --alfa 0.1
    bin/trm nothing
    bin/train config/none.yaml
    python -m tests.bench.nothing
    bin/trm gate WW --alph 0.1        an abbreviation

Say `bin/trm seed --from-nowhere` or `bin/trm seed --from-db`.
"""
    told = [problems(command, whole=True) for command in commands_in(text)]
    assert all(told)
    assert len(told) == 6
    assert [problems(command, whole=False) for command in mentions_in(text)] == [
        ["unknown option --from-nowhere"],
        [],
    ]


def test_paths_of_the_checkout_are_those() -> None:
    """The folders by which a path is known for the checkout's own."""
    assert all(list(Path(ROOT).glob(f"{start}*")) for start in BRINGS)
