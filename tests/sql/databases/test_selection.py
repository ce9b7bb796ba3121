"""What a SELECT reads, and the row ids that are put into its text."""

from __future__ import annotations

import pytest

from elasticdl.sql.databases.selection import read_selection


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [
        ("duckdb", "SELECT a FROM t", "SELECT t.rowid, a FROM t"),
        ("duckdb", "select all a, b, from t", "select all t.rowid, a, b, from t"),
        ("duckdb", "FROM t WHERE a > 1", "SELECT t.rowid, * FROM t WHERE a > 1"),
        ("duckdb", "FROM t SELECT a", "FROM t SELECT t.rowid, a"),
        (
            "duckdb",
            "SELECT /* from x */ a -- select\nFROM t",
            "SELECT t.rowid, /* from x */ a -- select\nFROM t",
        ),
        (
            "postgres",
            "WITH w AS (SELECT 1 AS x FROM u) SELECT a FROM t WHERE a IN (SELECT x FROM w)",
            "WITH w AS (SELECT 1 AS x FROM u) SELECT t.rowid, a FROM t WHERE a IN (SELECT x FROM w)",
        ),
        (
            "postgres",
            "SELECT a IS DISTINCT FROM b, extract(year FROM d) FROM t",
            "SELECT t.rowid, a IS DISTINCT FROM b, extract(year FROM d) FROM t",
        ),
        ("mysql", "SELECT * FROM t", "SELECT * , t.rowid FROM t"),
        (
            "mysql",
            "SELECT extract(year FROM d) FROM t;",
            "SELECT extract(year FROM d) , t.rowid FROM t",
        ),
    ],
)
def test_row_ids_are_put_into_the_text(dialect: str, sql: str, expected: str) -> None:
    selection = read_selection(sql, dialect)
    assert (selection.fault, selection.source) == ("", ("t",))
    assert selection.with_columns(["t.rowid"]) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT t.a FROM t WHERE t.a > 1", "SELECT t.a FROM copy AS t WHERE t.a > 1"),
        ("SELECT x.a FROM t AS x", "SELECT x.a FROM copy AS x"),
        ("SELECT x.a FROM db.`odd name` x LIMIT 1", "SELECT x.a FROM copy x LIMIT 1"),
        ("SELECT a FROM db.`odd name`", "SELECT a FROM copy AS `odd name`"),
    ],
)
def test_another_table_is_read_under_the_same_name(sql: str, expected: str) -> None:
    assert read_selection(sql, "mysql").with_source("copy") == expected


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ('SELECT a FROM S.T JOIN "Quoted" USING (x)', [("s", "t"), ("Quoted",)]),
        ("WITH w AS (SELECT * FROM inner_one) SELECT * FROM w", [("inner_one",)]),
        ("SELECT (SELECT max(b) FROM u) FROM t", [("t",), ("u",)]),
        ("SELECT * FROM generate_series(1, 2)", []),
    ],
)
def test_all_tables_are_found(sql: str, tables: list[tuple[str, ...]]) -> None:
    assert sorted(read_selection(sql, "postgres").tables) == sorted(tables)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(a) OVER () AS s FROM t",
        "SELECT (SELECT max(b) FROM u) AS m FROM t",
        "SELECT CASE WHEN a > 1 THEN 'x' END FROM t ORDER BY a LIMIT 3 OFFSET 1",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
    ],
)
def test_rows_are_the_tables_when_nothing_merges_them(sql: str) -> None:
    assert read_selection(sql, "postgres").fault == ""


@pytest.mark.parametrize("sql", ["", "SELECT", "SELECT FROM WHERE", "((((", "'", "DROP TABLE t"])
def test_texts_that_are_no_select_are_told(sql: str) -> None:
    assert read_selection(sql, "duckdb").fault
