"""Static embeddings on this machine's CPU, by the library ``model2vec``.

Such a model is a table with a vector per token; a text is the mean of its tokens: no network,
no GPU, thousands of texts a second. The model is a folder that is there: nothing is downloaded.
The library is the extra ``embed`` and is imported when such a model is configured.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from actors.embedder.vectors import packed
from protocol.embedder import EmbedFailed

if TYPE_CHECKING:
    from model2vec import StaticModel

__all__ = ["LocalModel", "check_folder"]

_INSTALL = (
    f"install it: uv pip install --python {sys.executable} 'model2vec>=0.8' "
    f"(or {sys.executable} -m pip install 'model2vec>=0.8'; it is the extra named embed)"
)


class LocalModel:
    """A model of a folder. Blocking; one call at a time."""

    def __init__(self, folder: Path) -> None:
        self._model = _load(folder)

    def embed(self, texts: tuple[str, ...]) -> tuple[bytes, ...] | EmbedFailed:
        """The texts' vectors, in their order. A text without a known token has a zero vector."""
        try:
            return packed(
                list(self._model.encode(list(texts), max_length=None, use_multiprocessing=False))
            )
        except (UnicodeEncodeError, TypeError) as error:  # half of a surrogate pair
            return EmbedFailed(kind="bad_request", fatal=True, detail=f"a text: {error}")
        except ValueError as error:
            return EmbedFailed(kind="body", fatal=True, detail=str(error))


def check_folder(folder: Path) -> None:
    """What can be known without loading. Raises ValueError saying what to do."""
    if not folder.is_dir():
        raise ValueError(
            f"embedding.model {str(folder)!r}: no such folder; with base_url local it names a "
            "folder with a model2vec model (config.json, model.safetensors, tokenizer.json)"
        )
    if importlib.util.find_spec("model2vec") is None:
        raise ValueError(f"embedding.base_url local needs model2vec; {_INSTALL}")


def _load(folder: Path) -> StaticModel:
    """Raises ValueError saying what to do."""
    check_folder(folder)
    # The library asks the network for a name that is no folder. This one is, and still:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from model2vec import StaticModel

    try:
        return StaticModel.from_pretrained(folder)
    except Exception as error:  # the library's readers have no common error
        raise ValueError(f"embedding.model {folder}: cannot be read: {error!r}") from error
