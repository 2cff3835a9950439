"""Reading the configuration: default.yaml, overlaid by a file, overlaid by ``--set``.

Nothing is written and no actor exists while this runs: whatever is wrong is told here, all
of it in one error that names the layer, the key and what to do.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import yaml

from actors.config_checks import cross_checks
from actors.factorial_config import subject_keys
from actors.places import INSTALLED, ROOT
from protocol.settings import Config

__all__ = [
    "ROOT",
    "ConfigError",
    "agent_of",
    "changed_keys",
    "dump_config",
    "leaves_of",
    "load_config",
    "named_keys",
    "resolve_path",
    "subject_of",
]

DEFAULT = ROOT / "config" / "default.yaml"

# What may differ when a run is resumed: it changes pace, place or length, never a result.
FREE_ON_RESUME = (
    "run.log_level",
    "run.workspaces",
    "runtime.",
    "cache.",
    "trainer.epochs",
    "trainer.early_stop_patience",
    "llm.concurrency",
    "split.",
    "limits.",
    "llm.attempts",
    "llm.connect_s",
    "llm.first_token_s",
    "llm.idle_s",
    "llm.attempt_s",
    "llm.total_s",
    "llm.backoff",
    "llm.retry_",
    "llm.outage_s",
    "llm.first_answer_s",
    "llm.breaker",
    "agent.concurrency",
    "diagnoser.concurrency",
    "evolver.concurrency",
    "data.tree_cache",
    "frames.cache_mb",
    "embedding.base_url",
    "embedding.api_key_env",
    "embedding.batch",
    "embedding.concurrency",
    "embedding.attempts",
    "embedding.timeout_s",
    "embedding.backoff",
    "embedding.index",
    "twin.chunk_delay_s",
)

Tree = dict[str, object]
_OPEN = "extra_body"  # a mapping whose keys are the server's, not ours
_MOST_MEANT = 3  # keys that are offered for one that is unknown


class ConfigError(ValueError):
    """The configuration cannot be used; ``problems`` has one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice: the first one would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise ConfigError([f"line {line}: key {key!r} is given twice"])
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _parse(text: str, source: str) -> object:
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise ConfigError([f"{source}: not valid YAML: {error}"]) from error
    except ConfigError as error:
        raise ConfigError([f"{source}: {problem}" for problem in error.problems]) from error


def _read(path: Path) -> Tree:
    """A file's settings. A relative path may name one that the program brings along."""
    try:
        text = (path if path.exists() else ROOT / path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        where = "config/" if not INSTALLED else str(ROOT / "config")
        raise ConfigError([f"{path}: no such file; see {where} for examples"]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: cannot be read: {error}"]) from error
    tree = _parse(text, str(path))
    if tree is None:
        what = "holds no setting; write what differs from config/default.yaml"
        raise ConfigError([f"{path}: {what}, or give no file at all for the demo"])
    if not isinstance(tree, dict):
        raise ConfigError([f"{path}: must be a mapping of sections, not {type(tree).__name__}"])
    return tree


def _from_set(assignment: str) -> Tree:
    """``a.b=c`` as a tree; the value is YAML."""
    key, equals, value = assignment.partition("=")
    if not equals or not key.strip():
        raise ConfigError([f"--set {assignment}: must be KEY=VALUE, such as trainer.epochs=5"])
    parsed = _parse(value, f"--set {key}")
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    assert isinstance(parsed, dict)
    return parsed


def _leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and key != _OPEN:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _nearest(name: str, known: Sequence[str]) -> str:
    """What may have been meant: the same last part, else what begins so, else what looks alike."""
    leaf = name.rsplit(".", 1)[-1]
    leaves = {candidate: candidate.rsplit(".", 1)[-1] for candidate in known}
    close = [candidate for candidate in known if leaves[candidate] == leaf][:1]
    if not close:
        begun = [key for key in known if (key if "." in name else leaves[key]).startswith(name)]
        close = difflib.get_close_matches(name, begun, n=_MOST_MEANT, cutoff=0.0)
    if not close:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    if not close:
        by_leaf = {last: candidate for candidate, last in leaves.items()}
        close = [by_leaf[hit] for hit in difflib.get_close_matches(leaf, list(by_leaf), n=1)]
    if not close:
        return "; see config/default.yaml"
    return f"; did you mean {' or '.join(map(repr, close))}?"


def _overlay(
    base: Tree, layer: Tree, source: str, known: Sequence[str], prefix: str = ""
) -> list[str]:
    """Put a layer over the tree in place; returns its unknown keys as problems."""
    problems = []
    for key, value in layer.items():
        name = f"{prefix}{key}"
        if key not in base:
            problems.append(f"{source}: unknown key {name!r}{_nearest(name, known)}")
            continue
        below = base[key]
        if key == _OPEN:
            base[key] = value
        elif isinstance(below, dict) and isinstance(value, dict):
            problems += _overlay(below, value, source, known, f"{name}.")
        elif isinstance(below, dict):
            problems.append(f"{source}: {name!r} is a section, not a value; give its keys")
        else:
            base[key] = value
    return problems


def _convert(tree: Tree, sources: Mapping[str, str]) -> Config:
    """Typed sections. sources: by dotted key, the layer that gave it its value.

    Raises ConfigError with the first problem of every section.
    """
    problems = []
    sections: dict[str, object] = {}
    for field in msgspec.structs.fields(Config):
        try:
            sections[field.name] = msgspec.convert(tree[field.name], field.type)
        except msgspec.ValidationError as error:
            text, _, where = str(error).partition(" - at `$")
            key = f"{field.name}{where.rstrip('`')}"
            problems.append(f"{_source_of(key, sources)}{key}: {text[0].lower()}{text[1:]}")
    if problems:
        raise ConfigError(problems)
    return Config(**sections)  # type: ignore[arg-type]  # converted one by one above


def _source_of(key: str, sources: Mapping[str, str]) -> str:
    """``my.yaml: `` for a key, or a part of one (``llm.endpoints[0].roles``), of that layer."""
    name = key.partition("[")[0]
    while name:
        if name in sources:
            source = sources[name]
            return "--set " if source.startswith("--set ") else f"{source}: "
        name = name.rpartition(".")[0]
    return ""


def load_config(path: Path | None, assignments: Sequence[str] = ()) -> Config:
    """The configuration of a run.

    path: a YAML file with what differs from default.yaml; None: nothing does.
    assignments: ``KEY=VALUE`` texts, applied last, in order.

    Raises ConfigError naming every problem that could be seen.
    """
    tree = _read(DEFAULT)
    known = [name for name, _ in _leaves(tree)]
    layers = [] if path is None else [(str(path), _read(path))]
    layers += [(f"--set {text.partition('=')[0]}", _from_set(text)) for text in assignments]
    problems = []
    sources: dict[str, str] = {}
    for source, layer in layers:
        problems += _overlay(tree, layer, source, known)
        sources |= {name: source for name, _ in _leaves(layer)}
    try:
        config = _convert(tree, sources)
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from error
    if problems := [*problems, *cross_checks(config)]:
        raise ConfigError(problems)
    return config


def leaves_of(path: Path, assignments: Sequence[str] = ()) -> dict[str, object]:
    """Every value that would hold, by dotted key, right or wrong.

    Raises ConfigError for what is no tree of settings at all.
    """
    layers = [_read(DEFAULT), _read(path), *(_from_set(assignment) for assignment in assignments)]
    return {name: value for layer in layers for name, value in _leaves(layer)}


def named_keys(path: Path | None, assignments: Sequence[str] = ()) -> frozenset[str]:
    """The dotted keys that a file and assignments name themselves, whatever their values.

    Raises ConfigError as ``load_config`` does.
    """
    layers = [] if path is None else [_read(path)]
    layers += [_from_set(assignment) for assignment in assignments]
    return frozenset(name for layer in layers for name, _ in _leaves(layer))


def dump_config(config: Config) -> str:
    """The whole effective configuration as YAML; ``load_config`` reads it back equal."""
    plain = msgspec.to_builtins(config)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)


def agent_of(config: Config) -> str:
    """Who answers: models, sampling and budgets of the agent, in words that can be compared."""
    models = sorted({e.model for e in config.llm.endpoints if "search" in e.roles})
    search = msgspec.to_builtins(config.llm.search)
    extra = search.pop("extra_body") or {}
    for endpoint in config.llm.endpoints:
        if "search" in endpoint.roles:
            extra = extra | endpoint.extra_body
    named = [f"model {' or '.join(models)}", *(f"{key} {value}" for key, value in search.items())]
    named += [f"{key} {json.dumps(value, sort_keys=True)}" for key, value in sorted(extra.items())]
    agent = config.agent
    named += [f"max_steps {agent.max_steps}", f"search_k {agent.search_k}"]
    named += [
        f"max_parse_failures {agent.max_parse_failures}",
        f"time_budget_s {agent.time_budget_s:g}",
        f"token_budget {agent.token_budget}",
        f"max_prompt_tokens {agent.max_prompt_tokens}",
        f"tool_calls {agent.tool_calls}",
        f"skill_routing {agent.skill_routing}",
        f"vision {agent.vision}",
    ]
    if agent.vision != "none":
        named.append(f"frames {config.frames.longest_px} px at {config.frames.jpeg_quality}")
    if agent.vision == "describe":
        named.append(f"described by {_vision_of(config)}")
    if config.data.search != "bm25":
        named.append(f"search {config.data.search} by {config.embedding.model}")
    return ", ".join(named)


def _vision_of(config: Config) -> str:
    llm = config.llm
    seers = [
        f"{e.model} {json.dumps(e.extra_body, sort_keys=True)}"
        for e in llm.endpoints
        if "vision" in e.roles
    ]
    return f"{' or '.join(sorted(set(seers)))} {json.dumps(msgspec.to_builtins(llm.vision))}"


def subject_of(config: Config) -> dict[str, object]:
    """The settings that decide what a run finds, by dotted key.

    Of an endpoint: its model and what is asked of it, not where it runs or what it costs.
    """
    leaves = _leaves(msgspec.to_builtins(config))
    subject = subject_keys(config, dict(leaves), FREE_ON_RESUME)
    subject["llm.endpoints"] = [
        {
            "model": endpoint.model,
            "roles": sorted(endpoint.roles),
            "simulator": endpoint.base_url == "twin",
            "json_output": endpoint.json_output,
            "extra_body": endpoint.extra_body,
        }
        for endpoint in sorted(config.llm.endpoints, key=lambda e: (e.model, sorted(e.roles)))
    ]
    return subject


def changed_keys(old: Config, new: Config) -> list[tuple[str, object, object]]:
    """What would make a resumed run another run: (key, old value, new value)."""
    # of two designs each counts keys that the other has too, without reading them
    before, after = (
        dict(_leaves(msgspec.to_builtins(config))) | subject_of(config) for config in (old, new)
    )
    counted = subject_of(old).keys() | subject_of(new).keys()
    return [(key, before[key], after[key]) for key in sorted(counted) if before[key] != after[key]]


def resolve_path(text: str, config_path: Path | None) -> Path:
    """A path of the configuration: as it is, beside the config file, here, or as it came along.

    Raises ConfigError naming the places that were looked at, or that a run cannot keep the path.
    """
    given = Path(text).expanduser()
    places = [given] if given.is_absolute() else [Path.cwd() / given, ROOT / given]
    if config_path is not None and not given.is_absolute():
        places.insert(0, config_path.resolve().parent / given)
    for place in places:
        if place.exists():
            return _text_of(place.resolve())
    looked = ", ".join(str(place) for place in dict.fromkeys(places))
    raise ConfigError([f"{text}: no such file or folder; looked at {looked}"])


def _text_of(place: Path) -> Path:
    """The path, if it can be written down; what came along is written relative to ROOT."""
    if not place.is_relative_to(ROOT):
        try:
            str(place).encode()
        except UnicodeEncodeError as error:
            told = f"{place}: this path is no text in this locale and cannot be kept"
            raise ConfigError([f"{told}; give LC_ALL=C.UTF-8, or rename what it names"]) from error
    return place
