"""``bin/trm ask``: one question to an endpoint, and all that came of it.

Only what the parser needs is imported with this module: ``--help`` and usage errors are quick.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from actors.places import as_called

if TYPE_CHECKING:
    from actors.commands.ask_call import Said
    from protocol.llm import Attempt, ChatAnswer, ChatFailed

__all__ = ["EXIT_CODES", "add_ask_parser", "ask"]

_NOT_THERE = re.compile(r"\bHTTP (?:404|405|501)\b")
_PAGE = re.compile(r"<!doctype|<html|<body|<head", re.IGNORECASE)
_TAGS = re.compile(r"<style.*?(?:</style>|$)|<[^<>]*(?:>|$)", re.IGNORECASE | re.DOTALL)

DONE, FATAL, USAGE, TRANSIENT, INTERRUPTED = 0, 1, 2, 75, 130
EXIT_CODES = """\
exit codes: 0 answered, 1 the same request would fail again (a wrong key, a bad request),
2 usage, 75 it may pass (a truncated stream, a server that is down), 130 Ctrl-C"""

_DESCRIPTION = """\
Asks an OpenAI-compatible endpoint one question with the client that training uses: streamed,
with its clocks, its retries and its judgement of what a whole answer is. The text goes to
stdout, what happened to stderr; --json puts all of it into one object on stdout."""

_EXAMPLES = """\
examples:
  bin/trm ask --base-url http://127.0.0.1:8000/v1 --model qwen3 "Say hello"
  bin/trm ask --base-url URL --model M --attempts 1 --json hi     one try, told in full
  bin/trm ask --base-url URL --model M --image frame.jpg "What is on the table?"
  bin/trm ask --base-url URL --model M --schema reply.json - <prompt.txt
  bin/trm ask --config my.yaml --role judge "Why?"                as a run would ask

with a configuration whose endpoint is the simulator (base_url twin, as in config/demo.yaml) that is
started for the one question; it is no language model and knows nothing but the prompts of a run.

the object of --json:
  outcome     ok | retry_exhausted | fatal
  kind        why it failed (truncated, timeout, auth, ...), null after ok; detail says it in words
  text, reasoning, tool_calls, finish, usage (tokens as the endpoint counted them; null: it
              reported none)
  cached      true if the answer came from --cache; then nothing was sent
  seconds     the whole call, waits included
  attempts    every try: endpoint, outcome (ok | failed | cancelled), kind, seconds,
              first_token_s, detail

"""


def add_ask_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``ask`` and its options."""
    parser = commands.add_parser(
        "ask",
        prog="bin/trm ask",
        help="ask an endpoint one question and see what it really sends",
        description=_DESCRIPTION,
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", metavar="TEXT", help="the question; -: read it from stdin")
    _add_endpoint(parser)
    _add_request(parser)
    _add_conduct(parser)
    parser.set_defaults(run=ask)


def _add_endpoint(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("whom to ask")
    which = group.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--base-url",
        metavar="URL",
        help="the endpoint, such as http://127.0.0.1:8000/v1 (/chat/completions is added)",
    )
    which.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the endpoints that this configuration names for the role, with its clocks",
    )
    group.add_argument("--model", metavar="M", help="the model's name; with --base-url")
    group.add_argument(
        "--api-key-env",
        metavar="VAR",
        help="the NAME of the environment variable that holds the key; with --base-url",
    )
    group.add_argument(
        "--role",
        choices=("search", "judge", "evolve", "vision"),
        default="search",
        help="whose sampling settings, and with --config whose endpoints (default: search)",
    )


def _add_request(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to send")
    group.add_argument("--system", metavar="TEXT", help="a system message before the question")
    group.add_argument(
        "--image",
        action="append",
        default=[],
        type=Path,
        metavar="F",
        help="a PNG, JPEG, WebP or GIF, sent as a data URL; may be given several times",
    )
    group.add_argument(
        "--max-tokens", type=_count, metavar="N", help="most tokens of the answer (default: role's)"
    )
    group.add_argument(
        "--temperature", type=_temperature, metavar="X", help="(default: the role's)"
    )
    group.add_argument(
        "--schema", type=Path, metavar="FILE", help="a JSON schema that the answer is held to"
    )
    group.add_argument(
        "--extra-body",
        metavar="JSON",
        help="an object of further request fields, passed through untouched; with --base-url",
    )


def _add_conduct(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how")
    group.add_argument(
        "--timeout",
        type=_seconds,
        metavar="S",
        help="seconds for all of it (default: 300; with --config its llm.total_s)",
    )
    group.add_argument(
        "--attempts", type=_count, metavar="N", help="most tries; 1 turns retries off (default: 5)"
    )
    group.add_argument(
        "--cache", type=Path, metavar="FILE", help="a cache file to look into and to add to"
    )
    group.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a positive whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _temperature(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number such as 0 or 0.7")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be a number of seconds, above 0 and at most 86400"
        )
    return value


def ask(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    try:
        return _ask(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def _ask(arguments: argparse.Namespace) -> int:
    # Imported here: the rooms of the client take longer to load than --help may take.
    from actors.commands.ask_call import ask_once
    from actors.commands.ask_plan import plan_of
    from actors.logs import configure_logs

    try:
        plan = plan_of(arguments)
    except (ValueError, OSError) as error:
        _note(f"bin/trm ask: {error}")
        return USAGE
    configure_logs(None, "warning", None)
    hint = _hint_of(arguments)
    tell = partial(_tell_json if arguments.json else _tell, hint=hint)
    try:
        return ask_once(plan, tell)
    except OSError as error:
        _note(f"bin/trm ask: {error}")
        return FATAL


# -- telling ----------------------------------------------------------------------------


def _hint_of(arguments: argparse.Namespace) -> str:
    """What to try when there is nothing at the address; empty: nothing comes to mind."""
    url = (arguments.base_url or "").rstrip("/")
    if not url or url.endswith("/v1"):
        return ""
    return f"is it {url}/v1? Servers of this kind have their chats below /v1"


def _tell(said: Said, *, hint: str) -> int:
    from protocol.llm import ChatFailed

    reply = said.reply
    last = reply.detail if isinstance(reply, ChatFailed) else ""
    for number, attempt in enumerate(reply.attempts, start=1):
        told_below = number == len(reply.attempts) and attempt.detail == last
        _note(_attempt_line(number, attempt, "" if told_below else attempt.detail))
    if isinstance(reply, ChatFailed):
        passing = "would fail again" if reply.fatal else "may pass"
        why = _plain(reply.detail) or "no more is known"
        _note(f"{reply.kind}, {passing}: {why}, {said.seconds:.2f} s")
        if hint and _NOT_THERE.search(reply.detail):
            _note(hint)
        return FATAL if reply.fatal else TRANSIENT
    if reply.text:
        _write(reply.text.removesuffix("\n") + "\n")
    for call in reply.tool_calls:
        _note(f"tool call {call.name} {call.arguments}")
    _note(_last_line(reply, said.seconds))
    return DONE


def _plain(detail: str) -> str:
    """Without the mark-up of an error page: its words on one line."""
    if _PAGE.search(detail):
        detail = _TAGS.sub(" ", detail)
    return " ".join(detail.split())


def _attempt_line(number: int, attempt: Attempt, detail: str) -> str:
    first = "" if attempt.first_token_s is None else f", first token {attempt.first_token_s:.2f} s"
    detail = f": {_plain(detail)}" if detail else ""
    line = f"try {number} at {attempt.endpoint}: {attempt.outcome}, {attempt.seconds:.2f} s"
    return line + first + detail


def _last_line(reply: ChatAnswer, seconds: float) -> str:
    usage = reply.usage
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    thought = f" ({usage.reasoning_tokens} reasoning)" if usage.reasoning_tokens else ""
    counted = [
        f"{usage.prompt_tokens} prompt tokens{cached}",
        f"{usage.completion_tokens} completion tokens{thought}",
    ]
    parts = [
        f"finish {reply.finish}",
        *(counted if _counted(reply) else ["tokens unknown (the endpoint reported no usage)"]),
        f"{seconds:.2f} s",
        *(["from the cache"] if reply.cached else []),
        *(["reasoning: see --json"] if reply.reasoning else []),
    ]
    return ", ".join(parts)


def _counted(reply: ChatAnswer) -> bool:
    """Whether the endpoint reported what it used; no answer takes no token at all."""
    return reply.usage.prompt_tokens > 0 or reply.usage.completion_tokens > 0


def _tell_json(said: Said, *, hint: str) -> int:
    from protocol.llm import ChatFailed

    reply = said.reply
    told = _of_failure(reply) if isinstance(reply, ChatFailed) else _of_answer(reply)
    if isinstance(reply, ChatFailed) and hint and _NOT_THERE.search(reply.detail):
        _note(hint)
    told["seconds"] = round(said.seconds, 3)
    told["attempts"] = [_of_attempt(attempt) for attempt in reply.attempts]
    # In ASCII: one line in every locale and for every reader, whatever the endpoint sent.
    _write(json.dumps(told) + "\n")
    if isinstance(reply, ChatFailed):
        return FATAL if reply.fatal else TRANSIENT
    return DONE


def _of_answer(reply: ChatAnswer) -> dict[str, object]:
    return {
        "outcome": "ok",
        "kind": None,
        "detail": "",
        "text": reply.text,
        "reasoning": reply.reasoning,
        "tool_calls": [
            {"id": call.call_id, "name": call.name, "arguments": call.arguments}
            for call in reply.tool_calls
        ],
        "finish": reply.finish,
        "usage": (
            {name: getattr(reply.usage, name) for name in _USAGE} if _counted(reply) else None
        ),
        "cached": reply.cached,
    }


_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")


def _of_failure(reply: ChatFailed) -> dict[str, object]:
    """Usage is what the failed tries were counted for."""
    usage = {name: sum(getattr(a.usage, name) for a in reply.attempts) for name in _USAGE}
    return {
        "outcome": "fatal" if reply.fatal else "retry_exhausted",
        "kind": reply.kind,
        "detail": reply.detail,
        "text": "",
        "reasoning": "",
        "tool_calls": [],
        "finish": None,
        "usage": usage,
        "cached": False,
    }


def _of_attempt(attempt: Attempt) -> dict[str, object]:
    plain = attempt.outcome in ("ok", "cancelled")
    first = attempt.first_token_s
    return {
        "endpoint": attempt.endpoint,
        "outcome": attempt.outcome if plain else "failed",
        "kind": None if plain else attempt.outcome,
        "seconds": round(attempt.seconds, 3),
        "first_token_s": None if first is None else round(first, 3),
        "detail": attempt.detail,
    }


def _write(text: str) -> None:
    """On stdout, in UTF-8 whatever the locale says; half a surrogate pair has no form in it."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _note(text: str) -> None:
    sys.stderr.write(as_called(text).rstrip("\n") + "\n")
    sys.stderr.flush()
