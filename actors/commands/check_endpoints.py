"""What the replies of the endpoints mean for a run, in lines with a remedy. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from actors.commands.check_calls import Embedded, Heard, Models
from actors.commands.check_line import Line, fail, fine, in_words, warn
from actors.commands.check_probes import Probe, roles_of
from actors.commands.check_remedies import (
    NO_TOOLS,
    THINKING,
    chat_remedy,
    form_remedy,
    list_remedy,
    nearest,
    unreached_remedy,
)
from actors.diagnoser.judge import JudgeReply
from actors.evolver.prompt import EditorReply
from actors.rollout.action import BadCall
from actors.rollout.dialect import JsonDialect, NativeDialect
from actors.rollout.tools import offered_tools
from actors.system import TWIN
from prompts.reply import Unreadable, decode_reply
from protocol.llm import ChatAnswer, ChatFailed
from protocol.settings import Config, Endpoint

__all__ = ["embedding_line", "endpoint_lines", "first_token_s"]

_THOUGHT = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CHARS_PER_TOKEN = 3.0  # a careful guess: text in other scripts takes more tokens
_OTHER_CHARS = 6000  # of the templates around what the settings bound
_UNREACHED = ("transport", "breaker_open")
_JARGON = re.compile(r"^ConnectError: |\[Errno -?\d+\] ")


def endpoint_lines(
    config: Config, endpoint: Endpoint, models: Models | None, heard: Sequence[Heard]
) -> list[Line]:
    """Every line about one endpoint. models: None for the simulator, which was not asked."""
    answered = any(isinstance(one.reply, ChatAnswer) for one in heard)
    lines = [] if models is None else [_model_line(config, endpoint, models, answered=answered)]
    for place, one in enumerate(heard):
        if isinstance(one.reply, ChatAnswer):
            lines += _of_kind(config, one, one.reply)
        elif not any(one.reply is before.reply for before in heard[:place]):
            skipped = sum(one.reply is later.reply for later in heard[place + 1 :])
            lines.append(_failed(one.probe, one.reply, models, skipped, answered=answered))
    return lines


def embedding_line(config: Config, embedded: Embedded) -> Line:
    """What came of embedding two texts."""
    where = f"{config.embedding.model} at {config.embedding.base_url}"
    if embedded.failed:
        remedy = "mend the section embedding, start its server, or set data.search to bm25"
        return fail("embedding", f"{where}: {in_words(embedded.failed)}", remedy)
    told = f"{where}: {embedded.dimensions} dimensions, {embedded.seconds:.2f} s for two texts"
    return fine("embedding", told)


def first_token_s(reply: ChatAnswer) -> float | None:
    """Of the try that answered."""
    return reply.attempts[-1].first_token_s if reply.attempts else None


def _named(endpoint: Endpoint) -> str:
    return f"{endpoint.name} ({endpoint.model})"


# -- models and context -----------------------------------------------------------------


def _model_line(config: Config, endpoint: Endpoint, models: Models, *, answered: bool) -> Line:
    name, where = "endpoint", f"{endpoint.name} at {endpoint.base_url}"
    if models.below_v1:
        deeper = f"set its base_url to {endpoint.base_url.rstrip('/')}/v1"
        return fail(name, f"{where}: nothing there, but its models are below /v1", deeper)
    if models.served is None:
        asked = f"GET {endpoint.base_url.rstrip('/')}/models"
        if models.unreached and not answered:
            told = f"{endpoint.name}: no server answers at {endpoint.base_url} ({asked}: "
            return fail(name, f"{told}{in_words(models.why)})", unreached_remedy(endpoint, models))
        told = f"{where}: no list of models ({asked}: {models.why}), so its context is unknown"
        if answered:
            return warn(name, told, "nothing, if you know that the context suffices")
        return fail(name, told, list_remedy(endpoint, models.status))
    if endpoint.model not in models.served:
        told = f"{where}: {endpoint.model} is not among its {len(models.served)} models"
        other = nearest(endpoint.model, sorted(models.served))
        return warn(name, f"{told}, but it answers", other) if answered else fail(name, told, other)
    length = models.served[endpoint.model]
    if length is None:
        return fine(name, f"{where} serves {endpoint.model}; it does not tell the context length")
    return _length_line(config, endpoint, f"{where} serves {endpoint.model}", length)


def _length_line(config: Config, endpoint: Endpoint, told: str, length: int) -> Line:
    """Whether the longest requests of its roles fit the context."""
    told = f"{told}, context {length}"
    roles = roles_of(config, endpoint)
    if "search" in roles:
        wanted = config.agent.max_prompt_tokens + (config.llm.search.max_tokens or 0)
        if length < wanted:
            room = length - (config.llm.search.max_tokens or 0)
            return fail(
                "endpoint",
                f"{told}, but the agent may ask for {wanted} tokens",
                f"set agent.max_prompt_tokens to {max(1000, room // 1000 * 1000)}, lower "
                "llm.search.max_tokens, or serve a longer context",
            )
    for role, chars, limit, knob in (
        (
            "judge",
            config.diagnoser.max_trace_chars + config.evolver.max_skill_chars + _OTHER_CHARS,
            config.llm.judge.max_tokens,
            "diagnoser.max_trace_chars",
        ),
        (
            "evolve",
            config.evolver.minibatch * (config.evolver.max_trace_chars + 1000)
            + config.evolver.max_skill_chars
            + _OTHER_CHARS,
            config.llm.evolve.max_tokens,
            "evolver.minibatch or max_trace_chars",
        ),
    ):
        wanted = round(chars / _CHARS_PER_TOKEN) + (limit or 0)
        if role in roles and length < wanted:
            what = f"{told}, but the longest {role} call may take about {wanted} tokens"
            return warn("endpoint", what, f"lower {knob}, or serve a longer context")
    return fine("endpoint", f"{told}: enough")


# -- failures ---------------------------------------------------------------------------


def _failed(
    probe: Probe, failure: ChatFailed, models: Models | None, skipped: int, *, answered: bool
) -> Line:
    """skipped: calls that were not made, since they would have failed likewise."""
    name = {"form": "json", "image": "vision"}.get(probe.kind, probe.role)
    if failure.kind in _UNREACHED:
        url = f"{probe.endpoint.base_url.rstrip('/')}/chat/completions"
        told = f"{_named(probe.endpoint)}: no chat: POST {url}: {_bare(failure.detail)}"
        if models is not None and models.unreached:
            return fail(name, told + _skipped(skipped), "as the line above says")
    else:
        told = f"{_named(probe.endpoint)}: {failure.kind}: {in_words(failure.detail)}"
    return fail(
        name, told + _skipped(skipped), chat_remedy(probe, failure, models, answered=answered)
    )


def _bare(detail: str) -> str:
    """Without the names and numbers that only a programmer knows."""
    return _JARGON.sub("", in_words(detail))


def _skipped(calls: int) -> str:
    if not calls:
        return ""
    return f" ({calls} more call{' was' if calls == 1 else 's were'} not tried)"


# -- answers ----------------------------------------------------------------------------


def _of_kind(config: Config, heard: Heard, reply: ChatAnswer) -> list[Line]:
    probe = heard.probe
    if probe.kind == "image":
        return [_seen(probe, reply)]
    if probe.kind == "form":
        return [_form(probe, reply)]
    if probe.kind == "pace":
        return []  # its seconds stand in the estimate
    speed = _speed_line(probe, reply, heard.seconds)
    if not probe.real or probe.endpoint.base_url == TWIN:
        return [speed]
    read = _reading(config, probe, reply)
    return [speed] if read is None else [speed, read]


def _speed_line(probe: Probe, reply: ChatAnswer, seconds: float) -> Line:
    """How it answered. A reply without counted tokens is no error, but nothing can be billed."""
    usage, first = reply.usage, first_token_s(reply)
    parts = [] if first is None else [f"first token {first:.2f} s"]
    took = reply.seconds or seconds
    simulated = probe.endpoint.base_url == TWIN
    if first is not None and usage.completion_tokens > 1 and took > first and not simulated:
        parts.append(f"{usage.completion_tokens / (took - first):,.0f} tokens/s")
    parts.append(f"finish {reply.finish}")
    if len(reply.attempts) > 1:
        parts.append(f"{len(reply.attempts)} tries")
    counted = usage.prompt_tokens or usage.completion_tokens
    if counted:
        parts.append(f"{usage.prompt_tokens} + {usage.completion_tokens} tokens")
    told = f"{_named(probe.endpoint)}: {', '.join(parts)}"
    if not counted:
        remedy = "let the server report usage in streams: limits and the cost table count nothing"
        return warn(probe.role, f"{told}, no usage reported", remedy)
    return fine(probe.role, told)


def _reading(config: Config, probe: Probe, reply: ChatAnswer) -> Line | None:
    """A line where the run could not read this reply, or only just; None: it could."""
    name, who, role = probe.role, _named(probe.endpoint), probe.role
    if reply.finish == "length":
        told = f"{who}: the reply was cut at {reply.usage.completion_tokens} tokens"
        return fail(name, told, THINKING.format(role=role))
    if not reply.text.strip() and not reply.tool_calls:
        return fail(name, f"{who}: an empty reply", THINKING.format(role=role))
    if _THOUGHT.search(reply.text):
        told = f"{who}: writes its thoughts into the reply"
        return warn(name, told, "start the server with its reasoning parser, or turn thinking off")
    problem = _problem(config, probe, reply)
    if problem is None:
        return None
    if role == "search" and config.agent.tool_calls == "native" and not reply.tool_calls:
        told = f"{who}: no tool call came back"
        if problem:
            return fail(name, f"{told}, and {problem}", NO_TOOLS)
        return warn(name, f"{told}, though its text can be read", NO_TOOLS)
    told = f"{who}: the reply is not as asked for: {problem}"
    return warn(name, told, "look at what it says: bin/trm ask; a run asks again and counts these")


def _problem(config: Config, probe: Probe, reply: ChatAnswer) -> str | None:
    """What a run's own reader says. Empty: readable, but not in the way that was asked for."""
    if probe.role == "judge":
        read: object = decode_reply(reply.text, JudgeReply)
        return read.problem if isinstance(read, Unreadable) else None
    if probe.role == "evolve":
        read = decode_reply(reply.text, EditorReply)
        return read.problem if isinstance(read, Unreadable) else None
    native = config.agent.tool_calls == "native"
    dialect = (NativeDialect if native else JsonDialect)(offered_tools(config.agent), "ABCD")
    said = dialect.read(reply, 1).read
    if isinstance(said, Unreadable):
        return said.problem
    if isinstance(said.call, BadCall):
        return said.call.problem
    return "" if native and not reply.tool_calls else None


def _form(probe: Probe, reply: ChatAnswer) -> Line:
    """Whether the endpoint holds the model to a form, as ``json_output`` says that it does.

    No run stops for it: replies are read by their text, and one that cannot be read is asked again.
    """
    endpoint = probe.endpoint
    who, how = _named(endpoint), f"json_output {endpoint.json_output}"
    try:
        value = json.loads(reply.text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        shown = " ".join(reply.text.split())[:60]
        told = f"{who}: {how}, but the reply is not held to it: {shown!r}"
        return warn("json", told, f"{form_remedy(endpoint)}; a run asks again where it must")
    fits = set(value) == {"colour", "legs"} and value["colour"] in ("red", "blue")
    if endpoint.json_output == "schema" and not fits:
        told = f"{who}: {how}, but the reply is another object: {json.dumps(value)[:60]}"
        return warn("json", told, f"{form_remedy(endpoint)}; a run asks again where it must")
    return fine("json", f"{who}: held to {how}")


def _seen(probe: Probe, reply: ChatAnswer) -> Line:
    who = _named(probe.endpoint)
    words = set(re.findall(r"[a-z]+", reply.text.lower()))
    if words & {"red", "blue"} == {probe.colour}:
        return fine("vision", f"{who}: sees that a picture is {probe.colour}")
    shown = " ".join(reply.text.split())[:60]
    told = f"{who}: was shown a {probe.colour} picture and said {shown!r}"
    return fail("vision", told, "serve a model that sees, or set agent.vision to none")
