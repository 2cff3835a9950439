"""A model on this machine: a tiny one that the test makes, and the real library."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from actors.embedder.local import LocalModel, check_folder
from protocol.embedder import EmbedFailed

WORDS = {"[UNK]": 0, "cat": 1, "kitten": 2, "oven": 3, "bread": 4}
TABLE = np.array([[0, 0, 0], [1, 0, 0], [0.9, 0.1, 0], [0, 1, 0], [0, 0.9, 0.4]], dtype=np.float32)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as people have one."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer(WordLevel(vocab=WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    StaticModel(TABLE, tokenizer, config={}).save_pretrained(folder)
    return folder


def _vectors(found: tuple[bytes, ...] | EmbedFailed) -> list[np.ndarray]:
    assert not isinstance(found, EmbedFailed)
    return [np.frombuffer(vector, dtype="<f4") for vector in found]


def test_words_of_one_meaning_are_near(model: Path) -> None:
    local = LocalModel(model)
    cat, kitten, oven, nothing = _vectors(local.embed(("cat", "kitten", "oven", "zebra")))
    assert cat @ kitten > 0.9 > 0.2 > cat @ oven
    assert np.linalg.norm(cat) == pytest.approx(1.0)
    assert not nothing.any()  # no known word: near to nothing
    alone, beside = local.embed(("cat",)), local.embed(("cat", "bread"))
    assert _vectors(alone)[0].tolist() == _vectors(beside)[0].tolist()  # company does not matter


def test_a_text_that_cannot_be_encoded_fails_alone(model: Path) -> None:
    found = LocalModel(model).embed(("\ud800",))
    assert isinstance(found, EmbedFailed)
    assert found.kind == "bad_request"


def test_what_is_no_model_is_refused_with_a_remedy(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        LocalModel(tmp_path / "minishlab" / "potion-base-8M")  # never looked for on the network
    with pytest.raises(ValueError, match="cannot be read"):
        LocalModel(tmp_path)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (tmp_path / name).write_bytes(b"\x00damaged")
    with pytest.raises(ValueError, match="cannot be read"):
        LocalModel(tmp_path)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(ValueError, match="extra named embed"):
        check_folder(model)
