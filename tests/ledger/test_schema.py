"""Tables follow the row types, and a row comes back as it went in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from actors.ledger import schema
from actors.ledger.reader import open_reader
from protocol.ledger import Select, Selected, Where, rows_of
from protocol.rows import AnyRow, EpochRow, OutcomeRow
from tests.ledger.rows import epoch, outcome
from tests.protocol.samples import sample_rows


def _database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for statement in schema.ddl():
        connection.execute(statement)
    return connection


@pytest.mark.parametrize("row", sample_rows(), ids=lambda row: type(row).__name__)
def test_every_row_type_survives_the_database(row: AnyRow) -> None:
    """What is written is read back equal, booleans and nulls included."""
    connection = _database()
    connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))
    statement, values = schema.select_sql(Select(table=row.TABLE))
    (stored,) = connection.execute(statement, values).fetchall()
    assert schema.read_row(type(row), stored) == row
    connection.close()


def test_a_path_matches_itself_and_below_but_not_its_neighbours() -> None:
    """``e1/a/s1`` must not take ``e1/a/s10`` with it."""
    connection = _database()
    for key in ("e1/a/s1", "e1/a/s1/gate/b0", "e1/a/s10", "e1/a", "e1/a/s1-x"):
        row = outcome(key, "q1")
        connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))
    query = Select(table="outcomes", where=(Where(column="run_key", value="e1/a/s1/*"),))
    statement, values = schema.select_sql(query)
    found = sorted(row[0] for row in connection.execute(statement, values))
    assert found == ["e1/a/s1", "e1/a/s1/gate/b0"]
    connection.close()


@pytest.mark.parametrize(
    "query",
    [Select(table="no"), Select(table="steps", where=(Where(column="no", value=1),))],
    ids=["table", "column"],
)
def test_an_unknown_name_is_an_error_that_says_it(query: Select) -> None:
    """A typo must not look like an empty result."""
    with pytest.raises(schema.UnknownTable, match="no"):
        schema.select_sql(query)


def test_unstorable_text_is_told_before_the_transaction() -> None:
    """P0-4: text is normalised by whoever records it; the ledger never stores half of it."""
    with pytest.raises(UnicodeEncodeError):
        schema.parameters(outcome("k", "q", submitted="\ud83d"))


def test_rows_of_refuses_another_table() -> None:
    """The helper that types a selection does not lie."""
    with pytest.raises(TypeError, match="OutcomeRow"):
        rows_of(OutcomeRow, Selected(rows=(epoch(1),)))
    assert rows_of(EpochRow, Selected(rows=(epoch(1),))) == (epoch(1),)


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    """SQLite reads a quoted name that is no column as text: an old file would answer nonsense."""
    path = tmp_path / "run.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('CREATE TABLE "slow_updates" ("epoch" INTEGER PRIMARY KEY)')
    with (
        pytest.raises(sqlite3.OperationalError, match=r"another version.*slow_updates\.result"),
        open_reader(path),
    ):
        pytest.fail("it was opened")


def test_what_a_table_lacks() -> None:
    """Tables that are not there at all are made; columns are not."""
    assert schema.lacking({}) == ()
    whole = {table: schema.columns(kind) for table, kind in schema.ROW_TYPES.items()}
    assert schema.lacking(whole) == ()
    assert schema.lacking(whole | {"steps": ["run_key"]})[0] == "steps.epoch"
