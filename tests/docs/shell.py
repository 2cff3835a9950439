"""Commands of this program in Markdown: found in code blocks, taken apart as a shell does. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec

__all__ = ["Command", "commands_in", "mentions_in", "scripts_in", "simple_commands"]

_OURS = re.compile(r"^(?:bin/(?:trm|train|train-videomme|test)|trm|python)$")
_NAMED = re.compile(r"(?<![\w/.-])(?:bin/(?:trm|train|test)|trm |python -m )")
_SHELL = re.compile(
    r"^(?:[A-Z_]+=\S* +)*(?:bin/[a-z-]+|trm|python|export|cp|for|jq|tail|sqlite3|pip|uv|tmux|curl"
    r"|tensorboard|[A-Z]=\$)(?: |$)"
)
"""How a line begins that is meant for a shell: the programs that the documents use."""
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})")
_ASSIGNMENT = re.compile(r"^[A-Z_][A-Z0-9_]*=\S*$")
_MENTION = re.compile(r"`((?:bin/(?:trm|train|train-videomme|test)|trm)(?: [^`]*)?)`")
_REMARK = re.compile(r" +#|  +(?![ \"'<>|$-])")
_REDIRECTED = re.compile(r"(?<= )[012](?=[<>])")
_BREAKS = frozenset({"|", "||", "&&", ";", "&", "(", ")"})
_KEYWORDS = frozenset({"do", "then", "else", "!", "exec", "time"})


class Command(msgspec.Struct, frozen=True):
    """line: of the file, from 1. words: the program and its arguments."""

    line: int
    words: tuple[str, ...]


def commands_in(text: str) -> tuple[Command, ...]:
    """Every call of this program in the code blocks of a Markdown text, in order."""
    return tuple(
        Command(number, words)
        for number, line in _shell_lines(text)
        for words in simple_commands(line)
    )


def scripts_in(text: str) -> tuple[tuple[int, str], ...]:
    """Every command line of the code blocks, of whatever program, with its line, as typed.

    Remarks in the margin are left out; continued lines are joined, a loop is one script.
    """
    found: list[tuple[int, str]] = []
    held, began = "", 0
    for number, line in _code(text):
        part = _without_remark(line.strip())
        if not held and not _SHELL.match(f"{part} "):
            continue
        began = began if held else number
        if part.endswith("\\"):
            held += f"{part[:-1].rstrip()} "
            continue
        held += part
        if held.startswith("for ") and part != "done":
            held += "\n"
            continue
        found.append((began, held))
        held = ""
    return tuple(found)


def mentions_in(text: str) -> tuple[Command, ...]:
    """Calls in running text, such as ``bin/trm seed --from-scratch`` between backticks.

    They may lack what a real call needs.
    """
    return tuple(
        Command(number, tuple(_words(mention)))
        for number, line in enumerate(_prose(text), start=1)
        for mention in _MENTION.findall(line)
    )


def simple_commands(line: str) -> Iterator[tuple[str, ...]]:
    """The calls of this program in a shell line, without redirections and assignments.

    A quoted word that is a call itself, as tmux takes it, counts.
    """
    current: list[str] = []
    for word in [*_words(_REDIRECTED.sub(" ", _without_remark(line))), ";"]:
        if word in _BREAKS:
            yield from _own(current)
            current = []
        else:
            current.append(word)


def _own(words: list[str]) -> Iterator[tuple[str, ...]]:
    called: list[str] = []
    skip = False
    for word in words:
        if skip or (not called and (word in _KEYWORDS or _ASSIGNMENT.match(word))):
            skip = False
        elif set(word) <= set("<>&") and word:
            skip = True  # the file behind a redirection
        else:
            called.append(word)
    if called and _OURS.match(called[0]):
        yield tuple(called)
        return
    for word in called[1:]:
        if " " in word or word.startswith("bin/"):
            yield from simple_commands(word)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError as error:
        raise ValueError(f"no shell would read this: {line}") from error


def _without_remark(line: str) -> str:
    """Two blanks before a word, or ``#``, outside quotes begin a remark in the margin."""
    quote = ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif _REMARK.match(line, at):
            return line[:at]
    return line


def _shell_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of code blocks that name a command, continuation lines joined, without indentation."""
    held, began = "", 0
    for number, line in _code(text):
        if not held and not _NAMED.search(line):
            continue
        began = began if held else number
        held += line.strip()
        if held.endswith("\\"):
            held = f"{held[:-1].rstrip()} "
            continue
        yield began, held
        held = ""


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Lines inside fences, and indented ones behind a blank line."""
    fence = ""
    indented, blank = False, True
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[2]
        elif mark and mark[2].startswith(fence):
            fence = ""
        elif fence:
            yield number, line
        else:
            indented = line.startswith("    ") and (blank or indented)
            if indented:
                yield number, line
            blank = not line.strip()


def _prose(text: str) -> Iterator[str]:
    """Every line, those of code blocks emptied."""
    code = {number for number, _ in _code(text)}
    for number, line in enumerate(text.splitlines(), start=1):
        yield "" if number in code else line
