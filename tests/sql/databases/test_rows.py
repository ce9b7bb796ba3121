"""Rows out of a database, and tables into it: the same for all four."""

from __future__ import annotations

import os
import resource

import pyarrow as pa
import pytest

from elasticdl.errors import InvalidValue, OutputExists
from elasticdl.sql.databases import Database, open_database
from elasticdl.sql.rows import Rows

from .predicting import fill, q, rows_of

NUMBERS = (
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {n}) "
    "SELECT i, i * 0.5e0 AS half FROM r"
)


def numbers(database: Database, n: int) -> str:
    if database.dialect == "mysql":
        database.run("SET max_recursive_iterations = 4294967295")
    return NUMBERS.format(n=n)


def test_select_gives_rows_when_there_are_some(database: Database) -> None:
    fill(database)
    table = database.select("SELECT id, name FROM people ORDER BY id").to_table()
    assert table.column_names == ["id", "name"]
    assert table.to_pylist()[:3] == [
        {"id": 1, "name": "Ada"},
        {"id": 2, "name": "Alan"},
        {"id": 3, "name": None},
    ]


def test_select_keeps_its_types_when_it_gives_no_row(database: Database) -> None:
    fill(database)
    full = database.select("SELECT * FROM people")
    schema = full.schema
    full.close()
    empty = database.select("SELECT * FROM people WHERE id > 100").to_table()
    assert (empty.num_rows, empty.schema) == (0, schema)
    assert pa.types.is_integer(schema.field("id").type)
    assert pa.types.is_string(schema.field("name").type)


def test_rows_come_in_batches_when_they_are_many(database: Database) -> None:
    with database.select(numbers(database, 150_000)) as rows:
        sizes = [batch.num_rows for batch in rows]
    assert sum(sizes) == 150_000
    assert max(sizes) <= 65_536


def test_rows_go_on_when_the_database_is_asked_something_else(database: Database) -> None:
    fill(database)
    with database.select(numbers(database, 150_000)) as rows:
        seen = [next(iter(rows)).num_rows]
        assert len(rows_of(database, "SELECT * FROM people")) == 6
        assert "people" in database.tables()
        seen += [batch.num_rows for batch in rows]
    assert sum(seen) == 150_000


def test_database_works_on_when_rows_are_not_taken(database: Database) -> None:
    rows = database.select(numbers(database, 150_000))
    next(iter(rows))
    rows.close()
    assert rows_of(database, "SELECT 1 AS one") == [(1,)]
    database.select(numbers(database, 100_000))  # held by nobody
    assert rows_of(database, "SELECT 2 AS two") == [(2,)]


def test_run_tells_the_number_of_rows_when_a_statement_changes_some(database: Database) -> None:
    fill(database)
    assert database.run("UPDATE people SET age = age + 1 WHERE id > 3") is None
    assert database.changed == 3
    rows = database.run("SELECT count(*) AS n FROM people")
    assert rows is not None
    assert rows.to_table().to_pylist() == [{"n": 6}]
    assert database.changed is None


def test_run_passes_transactions_on_when_the_user_has_one(database: Database) -> None:
    fill(database)
    database.run("BEGIN")
    database.run("DELETE FROM people")
    assert rows_of(database, "SELECT * FROM people") == []
    with pytest.raises(InvalidValue, match="COMMIT or ROLLBACK"):
        database.target("SELECT * FROM people", ["result"], "x", overwrite=False).__enter__()
    database.run("ROLLBACK")
    assert len(rows_of(database, "SELECT * FROM people")) == 6


def test_tables_and_columns_are_listed_when_asked_for(database: Database) -> None:
    fill(database)
    fill(database, "odd table")
    assert set(database.tables()) == {"people", "odd table"}
    assert database.columns("odd table") == ["id", "name", "age"]
    assert database.columns("nothing") == []


SCHEMA = pa.schema(
    [("metric", pa.string()), ("value", pa.float64()), ("n", pa.int64()), ("good", pa.bool_())]
)


def result() -> Rows:
    columns = [["accuracy", "f1 'ü'"], [0.75, None], [2**60, -3], [True, None]]
    return Rows.of(pa.table([pa.array(c) for c in columns], schema=SCHEMA))


def test_write_table_makes_a_table_when_there_is_none(database: Database) -> None:
    assert database.write_table(["scores"], result(), replace=False) == 2
    rows = rows_of(database, "SELECT metric, value, n, good FROM scores ORDER BY n DESC")
    assert rows == [("accuracy", 0.75, 2**60, True), ("f1 'ü'", None, -3, None)]


def test_write_table_refuses_when_there_is_one(database: Database) -> None:
    database.write_table(["scores"], result(), replace=False)
    with pytest.raises(OutputExists, match="scores"):
        database.write_table(["scores"], result(), replace=False)
    assert database.write_table(["scores"], result(), replace=True) == 2
    assert len(rows_of(database, "SELECT * FROM scores")) == 2


def test_write_table_leaves_the_old_one_when_the_rows_fail(database: Database) -> None:
    database.write_table(["scores"], result(), replace=False)

    def failing() -> object:
        yield result().to_table().to_batches()[0]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        database.write_table(["scores"], Rows(SCHEMA, failing()), replace=True)
    assert len(rows_of(database, "SELECT * FROM scores")) == 2
    assert database.tables() == ["scores"]


def test_write_table_takes_rows_of_the_same_database_when_they_stream(database: Database) -> None:
    rows = database.select(numbers(database, 70_000))
    assert database.write_table(["numbers"], rows, replace=False) == 70_000
    assert rows_of(database, "SELECT count(*), max(half) FROM numbers") == [(70_000, 35_000.0)]


def test_schemas_and_attached_databases_are_found_when_named(database: Database) -> None:
    other = f"other_{os.getpid()}"
    made = "ATTACH ':memory:' AS" if database.dialect == "sqlite" else "CREATE SCHEMA"
    database.run(f"{made} {other}")
    assert database.write_table([other, "scores"], result(), replace=False) == 2
    assert len(rows_of(database, f"SELECT * FROM {q(database, other, 'scores')}")) == 2
    assert database.columns(f"{other}.scores") == SCHEMA.names
    if database.dialect != "mysql":  # which lists those of the database that is in use
        assert any(name.endswith(f"{other}.scores") for name in database.tables())
    if database.dialect in ("mysql", "postgres"):
        database.run(f"DROP TABLE {other}.scores")
        database.run(f"DROP SCHEMA {other}")


def test_memory_stays_flat_when_rows_are_many(database: Database) -> None:
    if database.dialect not in ("duckdb", "postgres"):
        pytest.skip("takes too long by a Python cursor")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    series = (
        "range(1500000) AS t(i)"
        if database.dialect == "duckdb"
        else "generate_series(1, 1500000) AS t(i)"
    )
    count = 0
    with database.select(f"SELECT i, repeat('x', 300) || i AS text FROM {series}") as rows:
        for batch in rows:
            count += batch.num_rows
    assert count == 1_500_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 250_000  # kilobytes; all rows together have 450 MB


def test_files_are_read_by_name_when_the_database_is_duckdb() -> None:
    database = open_database(None)
    database.run("COPY (SELECT i AS a, 'x' AS b FROM range(3) t(i)) TO 'numbers.csv'")
    database.run("COPY (SELECT i AS a FROM range(4) t(i)) TO 'numbers.parquet'")
    assert rows_of(database, "SELECT * FROM 'numbers.csv'")[2] == (2, "x")
    assert len(rows_of(database, "FROM 'numbers.parquet'")) == 4
    with pytest.raises(LookupError, match="batch"):  # no Python variable is taken for a table
        database.select("SELECT * FROM batch")
    database.close()
