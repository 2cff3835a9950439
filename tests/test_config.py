"""The configuration: layers, and errors that say what to do before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from actors.config import (
    DEFAULT,
    ROOT,
    ConfigError,
    agent_of,
    changed_keys,
    dump_config,
    load_config,
    resolve_path,
)
from protocol.settings import Config


@pytest.mark.parametrize(
    "path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.name
)
def test_every_shipped_file_loads(path: Path) -> None:
    """What is in config/ works."""
    load_config(path)


def test_every_knob_has_a_comment() -> None:
    """default.yaml teaches: one line of comment for each key."""
    bare = [
        line
        for line in DEFAULT.read_text().splitlines()
        if line.startswith("  ") and not line.strip().startswith(("#", "-")) and "#" not in line
    ]
    assert bare == []


def test_the_effective_configuration_reads_back_equal(tmp_path: Path) -> None:
    """config.yaml of a workspace is the run's whole configuration."""
    config = load_config(None, ["trainer.epochs=7", "gate.profile=growth"])
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config), encoding="utf-8")
    assert load_config(path) == config


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("trainer.epoch=5", "did you mean 'trainer.epochs'"),
        ("epochs=5", "did you mean 'trainer.epochs'"),
        ("gate.alpha_smal=.1", "did you mean 'gate.alpha_small'"),
        ("gate.alpha=.3", "did you mean 'gate.alpha_small' or 'gate.alpha_large'?"),
        ("alpha=.3", "did you mean 'gate.alpha_small' or 'gate.alpha_large'?"),
        ("gate.cup=.3", "did you mean 'gate.cap'?"),
        ("zzz=1", "see config/default.yaml"),
        ("trainer.epochs=many", "trainer.epochs: expected `int`"),
        ("trainer.epochs=0", "trainer.epochs: expected `int` >= 1"),
        ("twin.helpful=0.9", "must be 1"),
        ("run=3", "is a section"),
        ("trainer.epochs", "must be KEY=VALUE"),
        ("llm.endpoints=[{name: a}]", "llm.endpoints[0]"),
        ("llm.endpoints=[]", "no endpoint has the role 'search'"),
        ("run.name=../up", "run.name"),
    ],
)
def test_a_wrong_key_or_value_is_named(assignment: str, says: str) -> None:
    """Unknown and wrong keys are refused, with the nearest right name."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, [assignment])
    assert says in str(caught.value)


def test_P1_1_a_cache_that_lives_for_ever_is_refused() -> None:
    """P1-1: a time to live of 0 used to mean for ever; it must be positive."""
    for value in ("0", "-1"):
        with pytest.raises(ConfigError, match=r"cache\.ttl_s"):
            load_config(None, [f"cache.ttl_s={value}"])


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """One start, one complete list."""
    path = tmp_path / "mine.yaml"
    path.write_text("trainer: {epoch: 1}\nagents: {}\ngate: {alpha: 2}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(caught.value.problems) == 3
    assert all("mine.yaml" in problem for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("trainer: {epochs: 1}\ntrainer: {epochs: 2}\n", "given twice"),
        ("- a list\n", "must be a mapping"),
        ("trainer: {epochs: [\n", "not valid YAML"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    """The file stands in the message."""
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"broken\.yaml") as caught:
        load_config(path)
    assert says in str(caught.value)


def test_a_resumed_run_may_change_its_pace_but_not_its_subject() -> None:
    """ALGORITHM.md section 7: seed, split, model and gate are what a run is."""
    old = load_config(None)
    pace = load_config(None, ["trainer.epochs=9", "llm.concurrency=4", "runtime.drain_s=1"])
    assert changed_keys(old, pace) == []
    subject = load_config(None, ["run.seed=0", "gate.alpha_small=0.05"])
    assert changed_keys(old, subject) == [
        ("gate.alpha_small", 0.2, 0.05),
        ("run.seed", old.run.seed, 0),
    ]


def test_a_path_is_looked_for_beside_the_file_then_here_then_in_the_checkout(
    tmp_path: Path,
) -> None:
    """A user's config may name files beside itself."""
    (tmp_path / "mine.jsonl").write_text("", encoding="utf-8")
    assert resolve_path("mine.jsonl", tmp_path / "c.yaml") == (tmp_path / "mine.jsonl").resolve()
    assert resolve_path("config/default.yaml", None) == DEFAULT
    with pytest.raises(ConfigError, match="looked at"):
        resolve_path("nowhere", tmp_path / "c.yaml")


def test_extra_body_is_the_servers_not_ours(tmp_path: Path) -> None:
    """Any key is passed through; one that the client writes, or that two places write, is not."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "llm:\n  search: {extra_body: {min_p: 0.05, chat_template_kwargs: {thinking: false}}}\n"
    )
    config = load_config(path)
    wanted = {"min_p": 0.05, "chat_template_kwargs": {"thinking": False}}
    assert config.llm.search.extra_body == wanted
    assert 'chat_template_kwargs {"thinking": false}' in agent_of(config)
    (tmp_path / "again.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "again.yaml") == config
    twice = (
        "llm:\n  search: {extra_body: {min_p: 0.05}}\n  endpoints:\n"
        "    - {name: a, base_url: 'http://a', model: m, roles: [search, judge, evolve], "
        "extra_body: {min_p: 0.1, n: 2}}\n"
    )
    path.write_text(twice)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert "a: 'min_p' stands in its extra_body and in that of llm.search" in str(caught.value)
    assert "a: extra_body may not hold 'n'" in str(caught.value)


def test_an_endpoint_may_move_between_two_nights(tmp_path: Path) -> None:
    """Its address, name, key, price and pace are no part of what a run finds; its model is."""

    def configured(**changes: object) -> Config:
        endpoint: dict[str, object] = {"name": "a", "base_url": "http://a:1", "model": "m"}
        endpoint |= changes
        endpoint["roles"] = ["search", "judge", "evolve"]
        path = tmp_path / "c.yaml"
        path.write_text(yaml.safe_dump({"llm": {"endpoints": [endpoint]}}))
        return load_config(path)

    before = configured()
    moved = configured(name="b", base_url="http://b:2", concurrency=9, usd_per_m_prompt=1.0)
    assert changed_keys(before, moved) == []
    for change in ({"model": "n"}, {"extra_body": {"min_p": 0.1}}, {"json_output": "none"}):
        assert [key for key, _, _ in changed_keys(before, configured(**change))] == [
            "llm.endpoints"
        ]


@pytest.mark.parametrize("price", [{}, {"usd_per_m_prompt": 1.0}])
def test_a_limit_in_money_needs_every_price(tmp_path: Path, price: dict[str, float]) -> None:
    """What cannot be counted cannot be limited."""
    endpoint: dict[str, object] = {"name": "a", "base_url": "http://a", "model": "m", **price}
    endpoint["roles"] = ["search", "judge", "evolve"]
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({"llm": {"endpoints": [endpoint]}, "limits": {"max_usd": 5}}))
    with pytest.raises(ConfigError, match=r"limits\.max_usd: a has no usd_per_m_prompt"):
        load_config(path)


SEEING = (
    "llm.endpoints=[{name: a, base_url: 'http://x/v1', model: m, roles: [search]}, "
    "{name: v, base_url: 'http://y/v1', model: seer, roles: [vision]}, "
    "{name: j, base_url: twin, model: twin-judge, roles: [judge]}, "
    "{name: e, base_url: twin, model: twin-editor, roles: [evolve]}]"
)


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        (["agent.vision=inline"], "twin-agent is the simulator, which reads text only"),
        (["agent.vision=describe"], "twin-agent is the simulator, which reads text only"),
        ([SEEING.replace("[vision]", "[judge]"), "agent.vision=describe"], "the role 'vision'"),
        (["agent.vision=blurred"], "agent.vision"),
        (["agent.tool_calls=xml"], "agent.tool_calls"),
        (["agent.skill_routing=auto"], "agent.skill_routing"),
        (["agent.max_prompt_tokens=10"], "agent.max_prompt_tokens"),
    ],
)
def test_an_agent_that_cannot_be_is_refused(assignments: list[str], says: str) -> None:
    """Before anything is spent: pictures for somebody who cannot see, words that mean nothing."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, assignments)
    assert says in str(caught.value)


def test_whatever_changes_an_answer_is_part_of_who_answers() -> None:
    """A baseline of another agent must not pass for this one's; pace and address change nothing."""
    plain = agent_of(load_config(None, [SEEING]))
    other = [
        "agent.tool_calls=native",
        "agent.skill_routing=manual",
        "agent.vision=inline",
        "agent.vision=describe",
        "agent.token_budget=null",
        "agent.max_prompt_tokens=8000",
        "agent.max_parse_failures=2",
        "agent.time_budget_s=60",
    ]
    names = [agent_of(load_config(None, [SEEING, change])) for change in other]
    assert len({plain, *names}) == len(other) + 1
    described = [SEEING, "agent.vision=describe"]
    seer = agent_of(load_config(None, described))
    assert agent_of(load_config(None, [*described, "frames.longest_px=512"])) != seer
    assert agent_of(load_config(None, [SEEING.replace("seer", "x"), described[1]])) != seer
    assert (
        agent_of(load_config(None, [SEEING, "agent.concurrency=1", "frames.cache_mb=1"])) == plain
    )


def test_a_resumed_run_keeps_its_agent() -> None:
    """None of the agent's knobs is free on resume, save how many questions are under way."""
    old = load_config(None)
    for name in type(old.agent).__struct_fields__:
        value = getattr(old.agent, name)
        kinds = {"json": "native", "oracle": "manual"}
        changed = kinds.get(value, 7777) if name != "vision" else "none"
        new = load_config(None, [f"agent.{name}={changed}"])
        expected = [] if name in ("concurrency", "vision") else [f"agent.{name}"]
        assert [key for key, _, _ in changed_keys(old, new)] == expected


def test_run_the_benchmarks_configuration_is_whole() -> None:
    """Row run: ``config/train_videomme.yaml`` is read as it is; three epochs of the long part."""
    config = load_config(ROOT / "config" / "train_videomme.yaml")
    assert (config.data.duration, config.trainer.epochs, config.split.val_wrong_min) == (
        "long",
        3,
        20,
    )
    assert (config.split.n_trainval, config.split.n_test, config.split.val_ratio) == (100, 200, 0.4)
    assert config.agent.concurrency == config.llm.concurrency == 256
    assert not any(endpoint.base_url == "twin" for endpoint in config.llm.endpoints)
