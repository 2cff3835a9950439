"""A wrong value names the file that it stands in; a file without settings is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.config import ConfigError, load_config


def problems(path: Path | None, *assignments: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, assignments)
    return caught.value.problems


def test_a_wrong_value_names_its_file_and_key(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("trainer: {epochs: many}\nagent:\n  max_steps: 0\n")
    assert problems(path) == (
        f"{path}: agent.max_steps: expected `int` >= 1",
        f"{path}: trainer.epochs: expected `int`, got `str`",
    )


def test_a_wrong_value_inside_a_list_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    endpoint = "{name: a, base_url: http://h/v1, model: m, roles: [searcher]}"
    path.write_text(f"llm:\n  endpoints:\n    - {endpoint}\n")
    (problem,) = problems(path)
    assert problem.startswith(f"{path}: llm.endpoints[0].roles[0]: invalid enum value 'searcher'")


def test_the_last_layer_is_the_one_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("trainer: {epochs: 2}\n")
    assert problems(path, "trainer.epochs=many") == (
        "--set trainer.epochs: expected `int`, got `str`",
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n", "---\n", "null\n"])
def test_a_file_without_settings_does_not_train_the_demo(tmp_path: Path, text: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(text)
    (problem,) = problems(path)
    assert problem.startswith(f"{path}: holds no setting")
    assert "give no file at all for the demo" in problem
