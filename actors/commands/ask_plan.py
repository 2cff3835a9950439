"""What ``bin/trm ask`` was told, as a plan: endpoints and clocks, the chat and its files.

Everything that can be wrong with the arguments is found here, before anything is sent.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

import msgspec
import yaml

from actors.commands.ask_call import AskPlan, Simulator
from actors.config import load_config, resolve_path
from actors.llm.endpoints import resolve_endpoints
from protocol.llm import Chat, ChatMessage, ImagePart, TextPart
from protocol.settings import Config, LlmSettings

__all__ = ["AskUsageError", "plan_of"]

_TIMEOUT_S = 300.0
_ROLES = ("search", "judge", "evolve", "vision")
_PATH = "/chat/completions"
_SQLITE = b"SQLite format 3\x00"
TWIN = "twin"
_TWIN = (
    "the simulator (base_url twin) has no address of its own: ask it as a configuration sets it "
    "up, with --config config/demo.yaml"
)


class AskUsageError(ValueError):
    """An argument cannot be used; the message says which and what to do."""


def plan_of(arguments: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> AskPlan:
    """The plan for the parsed arguments.

    Raises AskUsageError, and ConfigError for a configuration that cannot be used; both are
    ValueErrors and say what to do.
    """
    config = _config(arguments)
    within_s = _within_s(arguments, config)
    return AskPlan(
        chat=_chat(arguments),
        llm=_client(arguments, config, within_s, environ),
        runtime=msgspec.structs.replace(config.runtime, inject_crash=()),
        cache=msgspec.structs.replace(
            config.cache, backend="none" if arguments.cache is None else "sqlite"
        ),
        cache_path=_cache_path(arguments.cache),
        within_s=within_s,
        simulator=_simulator(arguments, config),
    )


# -- whom to ask ------------------------------------------------------------------------


def _config(arguments: argparse.Namespace) -> Config:
    """The configuration that names the endpoints: the file's, or one made of the arguments."""
    if arguments.config is not None:
        for option in ("model", "api_key_env", "extra_body"):
            if getattr(arguments, option) is not None:
                name = f"--{option.replace('_', '-')}"
                raise AskUsageError(
                    f"{name} describes the endpoint of --base-url; with --config it stands in "
                    f"llm.endpoints of {arguments.config}"
                )
        return load_config(arguments.config)
    if arguments.model is None:
        raise AskUsageError(
            "--base-url needs --model NAME; the endpoint lists its models under "
            f"{arguments.base_url.rstrip('/')}/models"
        )
    endpoint = {
        "name": _checked_url(arguments.base_url),
        "base_url": arguments.base_url,
        "model": arguments.model,
        "roles": list(_ROLES),
        "api_key_env": arguments.api_key_env,
        "extra_body": _extra_body(arguments.extra_body),
    }
    # through a file, so that the endpoint is held to what every configuration is held to
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml") as file:
        yaml.safe_dump({"llm": {"endpoints": [endpoint]}}, file, allow_unicode=True)
        file.flush()
        return load_config(Path(file.name))


def _checked_url(url: str) -> str:
    """Host and port of a base URL. Raises AskUsageError."""
    if url == TWIN:
        raise AskUsageError(_TWIN)
    wanted = "must be like http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:  # a port that is no number, a broken address
        raise AskUsageError(f"--base-url {url!r}: {error}; it {wanted}") from error
    if not usable or not url.isprintable() or " " in url:
        raise AskUsageError(f"--base-url {url!r}: not the URL of a server; it {wanted}")
    if "@" in parts.netloc:
        raise AskUsageError(
            "--base-url: credentials do not belong into a URL; put the key into an environment "
            "variable and name it with --api-key-env"
        )
    if parts.query or parts.fragment or url.rstrip("/").endswith(_PATH):
        raise AskUsageError(
            f"--base-url {url!r}: {_PATH} is added to it, so it ends before that; it {wanted}"
        )
    return parts.netloc


def _extra_body(text: str | None) -> dict[str, object]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise AskUsageError(
            f"--extra-body: {error}; it must be a JSON object such as '{{\"min_p\": 0.1}}'"
        ) from error


def _within_s(arguments: argparse.Namespace, config: Config) -> float:
    if arguments.timeout is not None:
        return float(arguments.timeout)
    return config.llm.total_s if arguments.config is not None else _TIMEOUT_S


def _client(
    arguments: argparse.Namespace, config: Config, within_s: float, environ: Mapping[str, str]
) -> LlmSettings:
    """The client's settings: the role's endpoints alone, and no clock beyond ``within_s``."""
    llm, role = config.llm, arguments.role
    endpoints = tuple(endpoint for endpoint in llm.endpoints if role in endpoint.roles)
    if not endpoints:
        raise AskUsageError(
            f"{arguments.config}: no endpoint has the role {role}; add it to the roles of one, "
            "or ask another --role"
        )
    try:
        resolve_endpoints(endpoints, environ, llm.concurrency)
    except ValueError as error:
        raise AskUsageError(str(error)) from error
    clocks = ("connect_s", "first_token_s", "idle_s", "attempt_s", "total_s", "outage_s")
    changes: dict[str, object] = {name: min(getattr(llm, name), within_s) for name in clocks}
    if arguments.config is None:  # one call, one clock
        changes |= {"attempt_s": within_s, "total_s": within_s}
    if arguments.attempts is not None:
        changes["attempts"] = arguments.attempts
    if arguments.temperature is not None:
        sampling = msgspec.structs.replace(getattr(llm, role), temperature=arguments.temperature)
        changes[role] = sampling
    return msgspec.structs.replace(llm, endpoints=endpoints, **changes)


def _simulator(arguments: argparse.Namespace, config: Config) -> Simulator | None:
    """The simulator that the role's endpoints are; None: they are real ones.

    Raises ConfigError if its world cannot be found, or does not hold the questions.
    """
    endpoints = [e for e in config.llm.endpoints if arguments.role in e.roles]
    if not any(endpoint.base_url == TWIN for endpoint in endpoints):
        return None
    from actors.launch import check_world  # loads every room, which no other call needs

    questions = resolve_path(config.data.questions, arguments.config)
    world = resolve_path(config.twin.world, arguments.config)
    check_world(world, questions)
    return Simulator(config.twin, world, questions)


# -- what to ask ------------------------------------------------------------------------


def _chat(arguments: argparse.Namespace) -> Chat:
    text = _stdin() if arguments.text == "-" else arguments.text
    if not text.strip():
        where = "stdin" if arguments.text == "-" else "TEXT"
        raise AskUsageError(f"{where} is empty: what is to be asked?")
    content: str | tuple[TextPart | ImagePart, ...] = text
    if arguments.image:
        content = (TextPart(text=text), *(_image(path) for path in arguments.image))
    messages = [ChatMessage(role="user", content=content)]
    if arguments.system is not None:
        messages.insert(0, ChatMessage(role="system", content=arguments.system))
    return Chat(
        role=arguments.role,
        messages=tuple(messages),
        cache_salt=None,
        max_tokens=arguments.max_tokens,
        json_schema=None if arguments.schema is None else _schema(arguments.schema),
    )


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise AskUsageError(f"TEXT from stdin is not UTF-8: {error}; convert it first") from error


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AskUsageError(
            f"{option} {path}: cannot be read: {error.strerror}; give the path of a file that "
            "is there and may be read"
        ) from error


def _image(path: Path) -> ImagePart:
    data = _read("--image", path)
    kind = _image_type(data)
    if kind is None:
        raise AskUsageError(
            f"--image {path}: neither PNG nor JPEG, WebP or GIF by its first bytes; convert it "
            "to one of these"
        )
    return ImagePart(url=f"data:{kind};base64,{base64.b64encode(data).decode()}")


def _image_type(data: bytes) -> str | None:
    """By content: a name may lie, and servers look at the content too."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _schema(path: Path) -> str:
    data = _read("--schema", path)
    try:
        msgspec.json.decode(data, type=dict[str, object])
        return data.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AskUsageError(
            f"--schema {path}: {error}; it must hold one JSON object, the schema of the reply"
        ) from error


def _cache_path(path: Path | None) -> Path:
    """A cache sets aside what it cannot read: a file that is something else must not be given."""
    if path is None:
        return Path()  # the backend is none
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise AskUsageError(f"--cache {path}: must name a file in a folder that is there")
    if path.exists():
        begins = _read("--cache", path)[: len(_SQLITE)]
        if begins not in (b"", _SQLITE):
            raise AskUsageError(
                f"--cache {path}: is there and is no SQLite file; name a new file, or the "
                "cache.db of a workspace"
            )
    return path
