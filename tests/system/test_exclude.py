"""``data.exclude``: the launcher, the rooms and a resumed run leave out the same questions."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from actors.config import ROOT, ConfigError, load_config
from actors.dataset.errors import PoolsError, QuestionsError
from actors.dataset.fingerprint import dataset_fingerprint, sha256_hex
from actors.dataset.pools import encode_pools
from actors.dataset.questions import load_dataset
from actors.launch import fresh, resume
from protocol.seed import Pools, SeedInfo, SplitManifest

DEMO = ROOT / "seeds" / "demo"


def seed_without(folder: Path, question_id: str, exclude: Path) -> Path:
    """The demo's seed as a split without one test question would have left it."""
    seed = Path(shutil.copytree(DEMO, folder / "seed", ignore=shutil.ignore_patterns("trees")))
    dataset = load_dataset(DEMO / "questions.jsonl", exclude)
    pools = msgspec.json.decode((DEMO / "pools.json").read_bytes(), type=Pools)
    data = encode_pools(
        msgspec.structs.replace(pools, test=tuple(q for q in pools.test if q != question_id))
    )
    kept = {
        "dataset_fingerprint": dataset_fingerprint(dataset.questions),
        "pools_sha256": sha256_hex(data),
    }
    manifest = msgspec.json.decode((seed / "split_manifest.json").read_bytes(), type=SplitManifest)
    info = msgspec.json.decode((seed / "seed.json").read_bytes(), type=SeedInfo)
    manifest = msgspec.structs.replace(manifest, excluded=dataset.excluded, **kept)
    (seed / "pools.json").write_bytes(data)
    (seed / "split_manifest.json").write_bytes(msgspec.json.encode(manifest))
    (seed / "seed.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(info, **kept)))
    return seed


def a_test_question() -> str:
    """A test question whose video has others, so that no video leaves the split."""
    pools = msgspec.json.decode((DEMO / "pools.json").read_bytes(), type=Pools)
    questions = {q.question_id: q for q in load_dataset(DEMO / "questions.jsonl", None).questions}
    videos = Counter(questions[question_id].video_id for question_id in pools.test)
    return next(q for q in pools.test if videos[questions[q].video_id] > 1)


def test_a_run_leaves_out_what_its_split_left_out(tmp_path: Path) -> None:
    """The path is found beside the config file, kept absolute, and holds when resumed."""
    out = a_test_question()
    exclude = tmp_path / "wrong.txt"
    exclude.write_text(f"{out}  # the gold answer is wrong\n", encoding="utf-8")
    seed = seed_without(tmp_path, out, exclude)
    config = tmp_path / "my.yaml"
    config.write_text(f"data: {{seed: '{seed}', exclude: wrong.txt}}\n", encoding="utf-8")
    workspace = tmp_path / "run"
    launch = fresh(config, [], workspace)
    launch.lock.release()
    assert launch.paths.exclude == exclude
    assert load_config(workspace / "config.yaml").data.exclude == str(exclude)
    again = resume(None, [], workspace, [])
    again.lock.release()
    assert again.paths.exclude == exclude
    with pytest.raises(ConfigError, match=r"--accept-change data\.exclude"):
        resume(None, ["data.exclude=null"], workspace, [])
    with pytest.raises(PoolsError, match=f"left out are back: {out}"):
        resume(None, ["data.exclude=null"], workspace, ["data.exclude"])
    exclude.write_text("# nothing any more\n", encoding="utf-8")
    with pytest.raises(PoolsError, match=r"data\.exclude"):
        resume(None, [], workspace, [])


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (None, ConfigError, r"data\.exclude: .*no such file"),
        ("no-such-question\n", QuestionsError, "line 1: no question has the id"),
        ("", None, ""),
    ],
)
def test_a_list_that_cannot_be_used_stops_before_anything_is_written(
    tmp_path: Path, text: str | None, error: type[Exception] | None, says: str
) -> None:
    """A missing file, an unknown id; an empty list is none of it."""
    exclude = tmp_path / "wrong.txt"
    if text is not None:
        exclude.write_text(text, encoding="utf-8")
    assignments, workspace = [f"data.exclude={exclude}"], tmp_path / "run"
    if error is None:
        fresh(None, assignments, workspace).lock.release()
        return
    with pytest.raises(error, match=says):
        fresh(None, assignments, workspace)
    assert not workspace.exists()
