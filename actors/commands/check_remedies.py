"""What to do about an endpoint that does not answer as it should: by what it said. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from actors.commands.check_calls import Models
from actors.commands.check_probes import Probe
from actors.system import TWIN
from protocol.llm import ChatFailed, FailureKind
from protocol.settings import Endpoint

__all__ = [
    "NO_TOOLS",
    "THINKING",
    "chat_remedy",
    "form_remedy",
    "list_remedy",
    "nearest",
    "unreached_remedy",
]

THINKING = (
    "a thinking model may spend all its tokens on thoughts: raise llm.{role}.max_tokens, or turn "
    "thinking off (extra_body: {{chat_template_kwargs: {{enable_thinking: false}}}}), or start the "
    "server with a reasoning parser"
)
NO_TOOLS = (
    "start the server with tool calls (vLLM: --enable-auto-tool-choice --tool-call-parser NAME), "
    "or set agent.tool_calls to json"
)
_STATUS = re.compile(r"\bHTTP (\d{3})\b")
_NOT_THERE = (404, 405, 501)
_NOT_READY = (502, 503, 504)
_LOADING = "the server is there and not ready: wait until its model is loaded, or look at its log"
_LOG = "look at the server's log"
_WAIT = "wait, or lower llm.concurrency; a run slows down by itself"
_NO_NAME = ("not known", "nodename", "No address", "name resolution", "getaddrinfo")
_REMEDIES: Mapping[FailureKind, str] = {
    "transport": "start the server, or mend its base_url in llm.endpoints",
    "timeout": "look at the server's log and load; if it is only slow, a run waits "
    "llm.first_token_s and llm.idle_s",
    "rate_limit": _WAIT,
    "server_error": _LOG,
    "truncated": "a proxy may cut streams: look at its time-outs and buffering",
    "aborted": _LOG,
    "breaker_open": "start the server, or mend its base_url in llm.endpoints",
    "quota": "the account is empty: top it up, or name another endpoint",
    "context": "lower agent.max_prompt_tokens, or serve the model with a longer context",
    "retry_after_too_long": "wait, or raise llm.retry_after_cap_s",
    "body": "look at what the server says",
    "crash": "look at what is said",
    "budget": "raise the limit",
}


# -- the list of models -----------------------------------------------------------------


def list_remedy(endpoint: Endpoint, status: int | None) -> str:
    """Where somebody answers ``/models`` with no list, and no chat either. status: of HTTP."""
    mend = f"mend base_url of {endpoint.name} in llm.endpoints"
    if status in (401, 403):
        return _key_remedy(endpoint)
    if status == 402:
        return _REMEDIES["quota"]
    if status == 429:
        return _WAIT
    if status in _NOT_READY:
        return _LOADING
    if status is not None and status >= 500:
        return _LOG
    if status in _NOT_THERE:
        return _address_remedy(endpoint)
    if status is not None and 300 <= status < 400:
        return f"it sends elsewhere: {mend}"
    return f"look at what the server says; if it is no server of chats: {mend}"


def unreached_remedy(endpoint: Endpoint, models: Models) -> str:
    """Where nobody answers, by what the operating system said."""
    address = urlsplit(endpoint.base_url)
    key = f"mend base_url of {endpoint.name} in llm.endpoints"
    if models.silent:
        return f"something takes connections there and says nothing: look at its log, or {key}"
    if "refused" in models.why:
        return f"nothing listens there: start the server at {address.netloc}, or {key}"
    if any(words in models.why for words in _NO_NAME):
        return f"the name {address.hostname} leads nowhere from this machine: {key}"
    return f"look whether {address.netloc} can be reached from this machine, or {key}"


def nearest(model: str, served: Sequence[str]) -> str:
    """What it may be called there."""
    lowered = {name.lower().rsplit("/", 1)[-1]: name for name in served}
    close = difflib.get_close_matches(model, served, n=3, cutoff=0.4)
    tail = difflib.get_close_matches(
        model.lower().rsplit("/", 1)[-1], list(lowered), n=3, cutoff=0.6
    )
    close += [lowered[name] for name in tail if lowered[name] not in close]
    if close:
        return f"set its model; did you mean {' or '.join(close[:3])}?"
    return f"set its model to one of {', '.join(served[:5]) or 'those that it loads'}"


# -- chats ------------------------------------------------------------------------------


def chat_remedy(probe: Probe, failure: ChatFailed, models: Models | None, *, answered: bool) -> str:
    """Of a call that failed. answered: another call of this endpoint did not."""
    status = _status(failure.detail)
    if failure.kind == "auth":
        return _key_remedy(probe.endpoint)
    if failure.kind == "empty":
        return THINKING.format(role=probe.role)
    if failure.kind == "server_error" and status in _NOT_READY:
        return _LOADING
    if failure.kind != "bad_request":
        return _REMEDIES.get(failure.kind, "look at what is said")
    return _remedy_of_refusal(probe, failure.detail, models, answered=answered)


def _status(detail: str) -> int | None:
    found = _STATUS.search(detail)
    return None if found is None else int(found[1])


def _key_remedy(endpoint: Endpoint) -> str:
    if endpoint.api_key_env is None:
        return "it wants a key: name its environment variable in api_key_env of the endpoint"
    return f"the key in {endpoint.api_key_env} is refused: set the right one"


def _address_remedy(endpoint: Endpoint) -> str:
    url = endpoint.base_url.rstrip("/")
    if url.endswith("/v1") or url == TWIN:
        return "there are no chats at this address: look at base_url and model"
    return f"is it {url}/v1? Servers of this kind have their chats below /v1"


def _remedy_of_refusal(probe: Probe, detail: str, models: Models | None, *, answered: bool) -> str:
    """The server is there, and does not take the request."""
    endpoint = probe.endpoint
    known = models is not None and models.served
    if known and endpoint.model not in known and not answered:
        return nearest(endpoint.model, sorted(known))
    absent = _status(detail) in _NOT_THERE
    if absent and not answered:
        return _address_remedy(endpoint)
    if "UnsupportedProtocol" in detail or "InvalidURL" in detail:
        return "its base_url must be like http://127.0.0.1:8000/v1"
    said = _refused_part(probe)
    if absent:  # other calls are answered at this address
        return f"look at what the server says{f'; it may be this: {said}' if said else ''}"
    return said or "look at what the server says"


def _refused_part(probe: Probe) -> str:
    """What of the request may not be taken; empty: it has nothing unusual."""
    if probe.kind == "image":
        return "the model takes no pictures: serve one that sees, or set agent.vision to none"
    if probe.kind == "form":
        return form_remedy(probe.endpoint)
    if probe.chat.tools:
        return NO_TOOLS
    if probe.chat.json_schema is not None and probe.endpoint.json_output != "none":
        return f"if it is the JSON schema: {form_remedy(probe.endpoint)}"
    return ""


def form_remedy(endpoint: Endpoint) -> str:
    """Ask for less."""
    lower = {"schema": "object (any JSON object) or none", "object": "none"}
    return f"set json_output of {endpoint.name} to {lower.get(endpoint.json_output, 'none')}"
