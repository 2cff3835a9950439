"""Seeds: sealed, verified, never overwritten unasked (rows seed, W-2, P2-1, P2-2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from actors.workspace.baseline_db import connect_readonly, make_baseline_db, read_header
from actors.workspace.errors import BadFile, SeedError, SplitExists, VersionError, WorkspaceError
from actors.workspace.files import sha256_hex
from actors.workspace.seed import freeze_split, init_seed, open_seed, resplit, seed_problems
from protocol.seed import SplitManifest
from tests.workspace.material import (
    POOLS,
    RUN,
    make_seed,
    prediction,
    split_manifest,
    unchanged,
    write_parts,
)

OTHER = b'{"diag":["001-1","001-2"],"test":["002-1"],"val":["003-1"]}'


def edit(name: str, key: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        built = msgspec.json.decode((folder / name).read_bytes())
        built[key] = value
        (folder / name).write_bytes(msgspec.json.encode(built))

    return change


def rewrite(*ids: str, run_id: str = RUN) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        make_baseline_db(folder / "baseline.db", run_id, [prediction(i) for i in ids])

    return change


def spoil(statement: str) -> Callable[[Path], None]:
    """Put a baseline there that another program made, without our constraints."""

    def change(folder: Path) -> None:
        (folder / "baseline.db").unlink()
        with closing(sqlite3.connect(folder / "baseline.db")) as db:
            db.execute("CREATE TABLE predictions (run_id, question_id, right, video_id)")
            db.executemany(
                "INSERT INTO predictions VALUES (?, ?, 1, '001')",
                [(RUN, "001-1"), (RUN, "001-2")],
            )
            db.execute(statement)
            db.commit()

    return change


def test_seed_has_its_final_form(seed_dir: Path) -> None:
    """Row seed: seed.json, baseline.db, pools.json, split_manifest.json, skills/v1, prompts/v1."""
    assert {path.name for path in seed_dir.iterdir()} == {
        "seed.json",
        "baseline.db",
        "pools.json",
        "split_manifest.json",
        "skills",
        "prompts",
    }
    seed = open_seed(seed_dir)
    assert (seed.info.name, seed.info.baseline_run_id) == ("made-up", RUN)
    assert seed.pools.diag == ("001-1", "001-2")
    assert seed.without_baseline == ()


def test_repeated_init_changes_nothing(parts: Path, seed_dir: Path) -> None:
    """The same parts again: the same bytes."""
    files = [path for path in seed_dir.rglob("*") if path.is_file()]
    with unchanged(*files):
        make_seed(parts, seed_dir)
    assert {path for path in seed_dir.rglob("*") if path.is_file()} == set(files)


def test_seed_in_place(parts: Path) -> None:
    """Documents may lie in skills/v1 already: they are sealed there; other files stay."""
    for kind in ("skills", "prompts"):
        (parts / kind).mkdir()
        (parts / f"my-{kind}").rename(parts / kind / "v1")
    (parts / "questions.jsonl").write_text("{}\n", encoding="utf-8")
    init_seed(
        parts,
        "in-place",
        baseline_run_id=RUN,
        baseline_db=parts / "baseline.db",
        pools_json=parts / "pools.json",
        split_manifest=parts / "split_manifest.json",
        skills_dir=parts / "skills" / "v1",
        prompts_dir=parts / "prompts" / "v1",
        subtitles=False,
        agent="model m",
        tool_version="0.1.0",
    )
    assert open_seed(parts).info.name == "in-place"
    assert (parts / "questions.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (edit("seed.json", "pools_sha256", "0" * 64), r"seed\.json: pools_sha256 is 0000"),
        (edit("pools.json", "val", []), r"but pools\.json has"),
        (edit("split_manifest.json", "baseline_run_id", "other"), "baseline_run_id is other"),
        (edit("seed.json", "baseline_run_id", "other"), r"but seed\.json has other"),
        (edit("seed.json", "dataset_fingerprint", "e" * 64), r"but seed\.json has eeee"),
        (edit("seed.json", "subtitles", "yes"), "subtitles"),
        (rewrite("001-1", "001-2", run_id="other"), r"baseline\.db: run_id is other"),
        (rewrite("001-1", "002-1", "003-1"), "no outcome for diag questions 001-2"),
        (rewrite(), "run_id is nowhere"),
        (
            spoil(f"INSERT INTO predictions VALUES ('{RUN}', '001-1', 1, '001')"),
            "3 rows for 2 questions",
        ),
        (spoil("UPDATE predictions SET right = NULL WHERE question_id = '001-2'"), "001-2"),
        (lambda folder: (folder / "baseline.db").write_bytes(b"no database" * 99), "baseline"),
        (lambda folder: (folder / "baseline.db").unlink(), r"baseline\.db: is missing"),
        (lambda folder: (folder / "baseline.db-wal").write_bytes(b"rows"), "-wal"),
        (lambda folder: (folder / "seed.json").unlink(), r"seed\.json: cannot be read"),
        (lambda folder: (folder / "skills/v1/_default.md").write_text("x"), "was changed"),
    ],
)
def test_w_2_contradictions_are_refused(
    seed_dir: Path, change: Callable[[Path], None], named: str
) -> None:
    """W-2: hashes, counts and the baseline's run id are checked whenever a seed is opened."""
    change(seed_dir)
    with pytest.raises(WorkspaceError, match=named) as caught:
        open_seed(seed_dir)
    assert caught.value.remedy


def test_test_questions_may_lack_a_baseline(parts: Path, tmp_path: Path) -> None:
    """Only diag must be covered; the others are listed, not invented."""
    rewrite("001-1", "001-2", "002-1")(parts)
    assert make_seed(parts, tmp_path / "seed").without_baseline == ("003-1",)


def test_p2_2_reading_never_changes_the_baseline(seed_dir: Path) -> None:
    """P2-2: its bytes stay, nothing is made beside it, and it may be write-protected."""
    path = seed_dir / "baseline.db"
    path.chmod(0o444)
    names = sorted(other.name for other in seed_dir.iterdir())
    stamp = path.stat().st_mtime_ns
    with unchanged(path):
        assert read_header(path).run_ids == (RUN,)
        open_seed(seed_dir)
    assert path.stat().st_mtime_ns == stamp
    assert sorted(other.name for other in seed_dir.iterdir()) == names


def test_p2_2_writing_is_impossible(seed_dir: Path) -> None:
    """P2-2: a statement that would write is refused by the connection itself."""
    path = seed_dir / "baseline.db"
    with unchanged(path), closing(connect_readonly(path)) as reader:
        for statement in ("UPDATE predictions SET right = 0", "CREATE TABLE meta (x)"):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute(statement)


def test_p2_1_other_split_is_not_overwritten(seed_dir: Path) -> None:
    """P2-1: an error that names --force, and every byte stays."""
    with (
        unchanged(seed_dir / "pools.json", seed_dir / "split_manifest.json"),
        pytest.raises(SplitExists, match="--force"),
    ):
        freeze_split(seed_dir, OTHER, split_manifest(OTHER))


def test_p2_1_force_keeps_the_old_split(seed_dir: Path) -> None:
    """P2-1: the old file is kept under the first eight digits of its fingerprint."""
    kept = freeze_split(seed_dir, OTHER, split_manifest(OTHER), force=True)
    assert kept == seed_dir / f"pools.json.bak.{sha256_hex(POOLS)[:8]}"
    assert kept.read_bytes() == POOLS
    assert (seed_dir / "pools.json").read_bytes() == OTHER
    assert freeze_split(seed_dir, OTHER, split_manifest(OTHER)) is None  # the same again is fine


def test_p2_1_through_init_seed(parts: Path, seed_dir: Path) -> None:
    """P2-1: making a seed over another one follows the same rule."""
    write_parts(parts, OTHER)
    with pytest.raises(SplitExists, match="--force"):
        make_seed(parts, seed_dir)
    seed = make_seed(parts, seed_dir, force=True)
    assert seed.pools.val == ("003-1",)
    assert len(list(seed_dir.glob("pools.json.bak.*"))) == 1


def test_other_baseline_and_documents_are_not_overwritten(parts: Path, seed_dir: Path) -> None:
    """Another baseline needs --force; other documents are another seed."""
    make_baseline_db(
        parts / "baseline.db", RUN, [prediction(i, right=False) for i in ("001-1", "001-2")]
    )
    with pytest.raises(SeedError, match="--force"):
        make_seed(parts, seed_dir)
    (parts / "my-skills" / "_default.md").unlink()
    with pytest.raises(SeedError, match="other documents"):
        make_seed(parts, seed_dir, force=True)


def test_manifest_must_be_that_of_the_pools(parts: Path, tmp_path: Path) -> None:
    """Parts that do not belong together never become a seed."""
    with pytest.raises(SeedError, match="pools_sha256"):
        freeze_split(tmp_path, OTHER, split_manifest(POOLS))
    manifest = msgspec.json.encode(split_manifest(run_id="other"))
    (parts / "split_manifest.json").write_bytes(manifest)
    with pytest.raises(SeedError, match="'other'"):
        make_seed(parts, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_seed_keeps_the_first_row_per_question(tmp_path: Path) -> None:
    """Row seed: 902 rows for 900 questions: an error, or the first row of each when asked."""
    rows = [prediction("1"), prediction("2", right=False), prediction("1", right=False)]
    path = tmp_path / "baseline.db"
    with pytest.raises(SeedError, match="more than once: 1;"):
        make_baseline_db(path, RUN, rows)
    assert make_baseline_db(path, RUN, rows, dedupe_per_question=True) == 2
    with closing(connect_readonly(path)) as db:
        assert db.execute(
            "SELECT question_id, right FROM predictions ORDER BY question_id"
        ).fetchall() == [("1", 1), ("2", 0)]


def test_no_such_seed(tmp_path: Path, parts: Path) -> None:
    """The setting is named; so is a folder without documents."""
    with pytest.raises(SeedError, match=r"data\.seed"):
        open_seed(tmp_path / "none")
    for path in (parts / "my-prompts").rglob("*.md"):
        path.unlink()
    with pytest.raises(BadFile, match="holds no document"):
        make_seed(parts, tmp_path / "new")


def test_unusable_document_is_named(parts: Path, tmp_path: Path) -> None:
    """And the folder does not become a seed."""
    (parts / "my-skills" / "x.md").write_text("no front matter", encoding="utf-8")
    with pytest.raises(VersionError, match=r"x\.md"):
        make_seed(parts, tmp_path / "new")
    assert not (tmp_path / "new" / "seed.json").exists()


# -- what open_seed checks beside the contradictions above (W-2) --------------------------


def sealed_with(
    parts: Path,
    out: Path,
    pools: bytes,
    *,
    change: Callable[[SplitManifest], SplitManifest] = lambda manifest: manifest,
) -> None:
    """A seed whose files agree about pools that init_seed would refuse."""
    make_seed(parts, out)
    manifest = change(split_manifest(pools))
    (out / "pools.json").write_bytes(pools)
    (out / "split_manifest.json").write_bytes(msgspec.json.encode(manifest))
    edit("seed.json", "pools_sha256", manifest.pools_sha256)(out)


@pytest.mark.parametrize(
    ("pools", "named"),
    [
        (
            b'{"diag":["001-1"],"val":["001-2","002-1"],"test":["003-1"]}',
            "videos stand in diag and in val: 001",
        ),
        (
            b'{"diag":["001-1","001-2"],"val":["002-1"],"test":["002-1","003-1"]}',
            "stand there twice: 002-1",
        ),
        (
            b'{"diag":["001-1","001-2"],"val":["002-1","002-1"],"test":["003-1"]}',
            "stand there twice: 002-1",
        ),
        (
            b'{"diag":["001-1","001-2"],"val":[],"test":["003-1"]}',
            "diag and val hold 1 videos, but split_manifest.json says n_trainval 2",
        ),
        (
            b'{"diag":["001-1","001-2"],"val":["002-1"],"test":[]}',
            "test hold 0 videos, but split_manifest.json says n_test 1",
        ),
    ],
)
def test_w_2_pools_are_disjoint_and_as_large_as_the_split_says(
    parts: Path, tmp_path: Path, pools: bytes, named: str
) -> None:
    """W-2: although every hash agrees; and such pools never become a seed either."""
    out = tmp_path / "seed"
    sealed_with(parts, out, pools)
    with pytest.raises(SeedError, match=named):
        open_seed(out)
    write_parts(parts, pools)
    with pytest.raises(SeedError, match=named):
        make_seed(parts, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_w_2_excluded_questions_are_in_no_pool(parts: Path, tmp_path: Path) -> None:
    """W-2: what the manifest says was left out is left out."""
    out = tmp_path / "seed"

    def exclude(manifest: SplitManifest) -> SplitManifest:
        return msgspec.structs.replace(manifest, excluded=("002-1", "009-1"))

    sealed_with(parts, out, POOLS, change=exclude)
    with pytest.raises(SeedError, match="were excluded: 002-1"):
        open_seed(out)


def test_p2_2_a_changed_baseline_is_found(seed_dir: Path) -> None:
    """P2-2: its bytes never change, so a seed says what they are."""
    with closing(sqlite3.connect(seed_dir / "baseline.db")) as db:
        db.execute("UPDATE predictions SET right = 0 WHERE question_id = '002-1'")
        db.commit()
    with pytest.raises(SeedError, match=r"baseline\.db: was changed since the seed was made"):
        open_seed(seed_dir)
    edit("seed.json", "baseline_sha256", None)(seed_dir)  # as seeds were before it was recorded
    open_seed(seed_dir)


def test_every_problem_is_found(seed_dir: Path) -> None:
    """open_seed tells the first and how many there are; seed_problems lists all."""
    (seed_dir / "split_manifest.json").unlink()
    (seed_dir / "skills/v1/_default.md").write_text("x")
    edit("pools.json", "val", [])(seed_dir)
    with pytest.raises(BadFile, match=r"1 of 3 problems.*trm status"):
        open_seed(seed_dir)
    assert [problem.path.name for problem in seed_problems(seed_dir)] == [
        "split_manifest.json",
        "seed.json",
        "_default.md",
    ]


def test_p2_1_a_finished_seed_is_split_again(parts: Path, seed_dir: Path) -> None:
    """P2-1: only by force, kept aside with its parameters, and seed.json stays true."""
    with (
        unchanged(*(path for path in seed_dir.rglob("*") if path.is_file())),
        pytest.raises(SplitExists, match="--force"),
    ):
        resplit(seed_dir, OTHER, split_manifest(OTHER))
    kept = resplit(seed_dir, OTHER, split_manifest(OTHER), force=True)
    assert kept is not None
    assert kept.read_bytes() == POOLS
    eight = sha256_hex(POOLS)[:8]
    kept_manifest = seed_dir / f"split_manifest.json.bak.{eight}"
    assert msgspec.json.decode(kept_manifest.read_bytes(), type=SplitManifest) == split_manifest()
    seed = open_seed(seed_dir)
    assert (seed.pools.val, seed.info.pools_sha256) == (("003-1",), sha256_hex(OTHER))
    assert resplit(seed_dir, OTHER, split_manifest(OTHER)) is None


def test_a_split_by_another_baseline_is_refused(seed_dir: Path) -> None:
    """A seed has one baseline; one that was changed is none."""
    with pytest.raises(SeedError, match="split with the baseline that the seed carries"):
        resplit(seed_dir, OTHER, split_manifest(OTHER, run_id="other"), force=True)
    rewrite("001-1", "001-2")(seed_dir)
    with pytest.raises(SeedError, match="was changed since the seed was made"):
        resplit(seed_dir, OTHER, split_manifest(OTHER), force=True)


def test_p2_1_a_replaced_baseline_is_kept(parts: Path, seed_dir: Path) -> None:
    """P2-1 for the other frozen file: by force, and kept under its fingerprint."""
    old = (seed_dir / "baseline.db").read_bytes()
    make_baseline_db(
        parts / "baseline.db",
        RUN,
        [prediction(i, right=False) for i in ("001-1", "001-2", "002-1", "003-1")],
    )
    make_seed(parts, seed_dir, force=True)
    assert (seed_dir / f"baseline.db.bak.{sha256_hex(old)[:8]}").read_bytes() == old


def test_an_empty_log_beside_the_baseline_is_nothing(seed_dir: Path) -> None:
    """P2-2: only what would be lost is refused, in either journal mode."""
    (seed_dir / "baseline.db-wal").touch()
    open_seed(seed_dir)
    (seed_dir / "baseline.db-journal").write_bytes(b"rows")
    with pytest.raises(SeedError, match="-journal beside it"):
        open_seed(seed_dir)
