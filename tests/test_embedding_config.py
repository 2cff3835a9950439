"""The knobs of searching by meaning: what belongs together is asked for together."""

from __future__ import annotations

import pytest

from actors.config import ConfigError, agent_of, changed_keys, load_config
from actors.launch import check_surroundings
from actors.system import local_model

SERVER = ("embedding.base_url=http://127.0.0.1:1/v1", "embedding.model=bge")


def test_the_default_searches_words_and_needs_nobody() -> None:
    config = load_config(None)
    assert config.data.search == "bm25"
    assert "search" not in agent_of(config).rpartition("search_k")[2]
    assert local_model(config) is None


@pytest.mark.parametrize("how", ["embedding", "hybrid"])
def test_meaning_needs_a_server_and_a_model_and_is_part_of_the_agent(how: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, [f"data.search={how}"])
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "embedding.base_url",
        "embedding.model",
    ]
    config = load_config(None, [f"data.search={how}", *SERVER])
    assert agent_of(config).endswith(f"search {how} by bge")


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("ftp://x", "neither local nor a URL"),
        ("twin", "neither"),
        ("http://a:b@x/v1", "credentials"),
    ],
)
def test_an_address_that_cannot_be_is_refused(base_url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(None, [f"embedding.base_url={base_url}"])


def test_a_key_or_a_folder_that_is_missing_is_told_before_anything_is_written() -> None:
    keyed = load_config(None, ["data.search=hybrid", *SERVER, "embedding.api_key_env=NO_SUCH_KEY"])
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        check_surroundings(keyed)
    local = ["data.search=hybrid", "embedding.base_url=local", "embedding.model=no/such/model"]
    with pytest.raises(ConfigError, match="no such folder"):
        check_surroundings(load_config(None, local))


def test_a_resumed_run_may_move_its_embedder_but_not_change_its_model() -> None:
    old = load_config(None, ["data.search=hybrid", *SERVER])
    moved = [
        "data.search=hybrid",
        "embedding.base_url=http://127.0.0.2:1/v1",
        "embedding.model=bge",
        "embedding.batch=7",
        "embedding.index=/elsewhere",
        "frames.cache_mb=1",
    ]
    assert changed_keys(old, load_config(None, moved)) == []
    other = ["data.search=embedding", SERVER[0], "embedding.model=gte", "frames.longest_px=512"]
    changed = [key for key, _, _ in changed_keys(old, load_config(None, other))]
    assert changed == ["data.search", "embedding.model", "frames.longest_px"]
