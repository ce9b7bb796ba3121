"""Values of the databases' own types, as Arrow."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from elasticdl.sql.databases import Database, open_database

from .predicting import fill, q, rows_of


def first(database: Database, expression: str) -> tuple[pa.DataType, Any]:
    table = database.select(f"SELECT {expression} AS value").to_table()
    return table.schema.field(0).type, table.column(0)[0].as_py()


DAY, HOUR = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 10, 11, 12, 500_000)
POSTGRES = [
    ("1::smallint", pa.int16(), 1),
    ("9007199254740993::bigint", pa.int64(), 2**53 + 1),
    ("1.25::real", pa.float32(), 1.25),
    ("12.50::numeric(10,2)", pa.decimal128(10, 2), Decimal("12.50")),
    ("'NaN'::numeric(10,2)", pa.decimal128(10, 2), None),
    ("12.5::numeric", pa.float64(), 12.5),
    ("(1e60)::numeric(70,3)", pa.decimal256(70, 3), Decimal("1e60")),
    ("true", pa.bool_(), True),
    ("'grüße'::varchar(9)", pa.string(), "grüße"),
    ("DATE '2024-02-29'", pa.date32(), DAY),
    ("TIMESTAMP '2024-02-29 10:11:12.5'", pa.timestamp("us"), HOUR),
    (
        "TIMESTAMPTZ '2024-02-29 12:11:12.5+02'",
        pa.timestamp("us", "UTC"),
        HOUR.replace(tzinfo=dt.UTC),
    ),
    ("TIME '10:11:12'", pa.time64("us"), dt.time(10, 11, 12)),
    (
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
        pa.string(),
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    ("""'{"a": 1}'::jsonb""", pa.string(), '{"a": 1}'),
    ("ARRAY[1, 2]", pa.list_(pa.int32()), [1, 2]),
    ("ARRAY[1.5, 2]::numeric[]", pa.list_(pa.float64()), [1.5, 2.0]),
    ("'happy'::mood", pa.string(), "happy"),
    ("'10.0.0.1'::inet", pa.string(), "10.0.0.1/32"),
    ("'\\x00ff'::bytea", pa.binary(), b"\x00\xff"),
    ("4000000000::oid", pa.int64(), 4_000_000_000),
    ("'$12.50'::money", pa.float64(), 12.5),
    ("'(1,2)'::point", pa.string(), "(1,2)"),
    ("NULL", pa.string(), None),
]


def test_postgres_types_are_sensible(postgres: Database) -> None:
    postgres.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    for expression, kind, value in POSTGRES:
        found = first(postgres, expression)
        if pa.types.is_list(kind):
            found = (pa.list_(found[0].value_type), found[1])
        assert found == (kind, value), expression


def test_postgres_answers_are_rows_when_they_are_of_no_select(postgres: Database) -> None:
    for statement in ("SHOW server_version", "EXPLAIN SELECT 1", "VALUES (1), (2)"):
        rows = postgres.run(statement)
        assert rows is not None, statement
        assert rows.to_table().num_rows >= 1
    fill(postgres)
    rows = postgres.run("DELETE FROM people WHERE id > 4 RETURNING id")
    assert rows is not None
    assert rows.to_table().num_rows == 2
    assert postgres.run("VACUUM people") is None


MYSQL = [
    ("a TINYINT", "-5", pa.int8(), -5),
    ("a TINYINT UNSIGNED", "200", pa.uint8(), 200),
    ("a BIGINT UNSIGNED", "18446744073709551615", pa.uint64(), 2**64 - 1),
    ("a FLOAT", "1.25", pa.float32(), 1.25),
    ("a DOUBLE", "1e-300", pa.float64(), 1e-300),
    ("a DECIMAL(10,2)", "-12.50", pa.decimal128(10, 2), Decimal("-12.50")),
    ("a DECIMAL(38,0) UNSIGNED", "9" * 38, pa.decimal128(38, 0), Decimal("9" * 38)),
    ("a DECIMAL(65,30)", "1.5", pa.decimal256(65, 30), Decimal("1.5")),
    ("a DATE", "'2024-02-29'", pa.date32(), DAY),
    ("a DATE", "'0000-00-00'", pa.date32(), None),
    ("a DATETIME(6)", "'2024-02-29 10:11:12.5'", pa.timestamp("us"), HOUR),
    ("a DATETIME", "'0000-00-00 00:00:00'", pa.timestamp("us"), None),
    ("a TIMESTAMP NULL", "'2024-02-29 10:11:12'", pa.timestamp("us"), HOUR.replace(microsecond=0)),
    ("a TIME", "'-100:00:01'", pa.duration("us"), -dt.timedelta(hours=100, seconds=1)),
    ("a YEAR", "2024", pa.int16(), 2024),
    ("a BIT(9)", "b'100000001'", pa.uint64(), 257),
    ("a BLOB", "x'00ff'", pa.binary(), b"\x00\xff"),
    ("a VARBINARY(4)", "x'00ff'", pa.binary(), b"\x00\xff"),
    ("a TEXT", "'grüße 你好'", pa.string(), "grüße 你好"),
    ("a JSON", "'{\"a\": 1}'", pa.string(), '{"a": 1}'),
    ("a ENUM('x', 'y')", "'y'", pa.string(), "y"),
    ("a SET('x', 'y')", "'x,y'", pa.string(), "x,y"),
    ("a BOOLEAN", "TRUE", pa.int8(), 1),
    ("a CHAR(36) CHARACTER SET latin1", "'grüße'", pa.string(), "grüße"),
]


def test_mysql_types_are_sensible(mysql: Database) -> None:
    mysql.run("SET SESSION sql_mode = ''")
    for number, (column, value, kind, expected) in enumerate(MYSQL):
        mysql.run(f"CREATE TABLE t{number} ({column})")
        mysql.run(f"INSERT INTO t{number} VALUES (NULL), ({value}), (NULL)")
        table = mysql.select(f"SELECT * FROM t{number}").to_table()
        assert (table.schema.field(0).type, table.column(0).to_pylist()) == (
            kind,
            [None, expected, None],
        ), column
        empty = mysql.select(f"SELECT * FROM t{number} LIMIT 0")
        assert empty.schema == table.schema
        empty.close()


def test_mysql_rows_stay_as_they_are_when_a_column_is_added(mysql: Database) -> None:
    """Zeros in an AUTO_INCREMENT column, impossible dates, computed columns, the next number."""
    mysql.run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
    mysql.run(
        "CREATE TABLE people (id INTEGER AUTO_INCREMENT PRIMARY KEY, age INTEGER, born DATE, "
        "twice INTEGER AS (age * 2) STORED, "
        "seen TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY by_age (age)) COMMENT 'all'"
    )
    mysql.run(
        "INSERT INTO people (id, age, born, seen) VALUES (0, 7, '0000-00-00', '2001-01-01'), (5, 8, NULL, '2002-01-01')"
    )
    mysql.run("ALTER TABLE people AUTO_INCREMENT = 100")
    mysql.run("SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'")
    text = "SELECT id, age, CAST(born AS CHAR), twice, CAST(seen AS CHAR) FROM people ORDER BY id"
    before = rows_of(mysql, text)
    with mysql.target("SELECT age FROM people", ["people"], "guess", overwrite=False) as target:
        target.write(batch.append_column("guess", batch.column("age")) for batch in target.rows())
    assert rows_of(mysql, text) == before
    assert rows_of(mysql, "SELECT guess FROM people ORDER BY id") == [(7,), (8,)]
    mysql.run("INSERT INTO people (age) VALUES (1)")
    assert rows_of(mysql, "SELECT max(id) FROM people") == [(100,)]
    made = rows_of(mysql, "SHOW CREATE TABLE people")[0][1]
    assert "by_age" in made
    assert "COMMENT='all'" in made
    assert (
        rows_of(mysql, "SELECT @@sql_mode")[0][0]
        == "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE"
    )


@pytest.fixture
def sqlite() -> Any:
    database = open_database("sqlite://")
    yield database
    database.close()


def test_sqlite_columns_have_the_type_that_all_values_fit(sqlite: Database) -> None:
    sqlite.run(
        "CREATE TABLE t (i INTEGER, m INTEGER, b BOOLEAN, d DATE, s TIMESTAMP, n DECIMAL(9,2), x, z BLOB)"
    )
    many = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 70000)"
    sqlite.run(
        f"INSERT INTO t {many} SELECT i, i, i % 2, '2024-02-29', '2024-02-29 10:11:12.5', 5, NULL, x'00ff' FROM r"
    )
    sqlite.run("INSERT INTO t VALUES (NULL, 'many', NULL, NULL, NULL, 5.25, 1.5, NULL)")
    table = sqlite.select("SELECT * FROM t").to_table()
    kinds = [
        pa.int64(),
        pa.string(),
        pa.bool_(),
        pa.date32(),
        pa.timestamp("us"),
        pa.float64(),
        pa.float64(),
        pa.binary(),
    ]
    assert list(table.schema.types) == kinds
    assert list(table.slice(0, 1).to_pylist()[0].values()) == [
        1,
        "1",
        True,
        DAY,
        HOUR,
        5.0,
        None,
        b"\x00\xff",
    ]
    assert list(table.slice(70_000).to_pylist()[0].values()) == [
        None,
        "many",
        None,
        None,
        None,
        5.25,
        1.5,
        None,
    ]


@pytest.mark.parametrize(
    ("declared", "values", "kind", "expected"),
    [
        ("BOOLEAN", "(1), (5)", pa.int64(), [1, 5]),
        ("DATE", "('2024-02-29'), ('soon')", pa.string(), ["2024-02-29", "soon"]),
        ("DATE", "('2024-02-29'), (5)", pa.string(), ["2024-02-29", "5"]),
        ("", "(1), (2.5), ('x')", pa.string(), ["1", "2.5", "x"]),
        ("", "(1), (2.5)", pa.float64(), [1.0, 2.5]),
        ("", "(NULL), (NULL)", pa.null(), [None, None]),
        ("TEXT", "(NULL), (NULL)", pa.string(), [None, None]),
        ("NUMERIC", "(1), (2)", pa.float64(), [1.0, 2.0]),
        ("BLOB", "('x'), (x'00')", pa.binary(), [b"x", b"\0"]),
    ],
)
def test_sqlite_types_are_told_by_values_and_declaration(
    sqlite: Database, declared: str, values: str, kind: pa.DataType, expected: list[Any]
) -> None:
    sqlite.run(f"CREATE TABLE t (a {declared})")
    sqlite.run(f"INSERT INTO t VALUES {values}")
    table = sqlite.select("SELECT a FROM t").to_table()
    assert (table.schema.field(0).type, table.column(0).to_pylist()) == (kind, expected)


def test_sqlite_rows_are_told_apart_when_there_is_no_rowid(sqlite: Database) -> None:
    sqlite.run(
        "CREATE TABLE keyed (a TEXT, b INTEGER, age INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID"
    )
    sqlite.run("INSERT INTO keyed VALUES ('x', 1, 10), ('x', 2, 20), ('y', 1, 30)")
    sqlite.run("CREATE TABLE hidden (rowid TEXT, oid TEXT, age INTEGER)")
    sqlite.run("INSERT INTO hidden VALUES ('same', 'same', 1), ('same', 'same', 2)")
    for table in ("keyed", "hidden"):
        with sqlite.target(f"SELECT age FROM {table}", [table], "guess", overwrite=False) as target:
            target.write(
                batch.append_column("guess", batch.column("age")) for batch in target.rows()
            )
        assert {
            age == guess for age, guess in rows_of(sqlite, f"SELECT age, guess FROM {table}")
        } == {True}


def test_duckdb_columns_are_filled_when_there_are_indexes() -> None:
    database = open_database(None)
    fill(database, key=True)
    database.run("CREATE INDEX by_age ON people (age)")
    database.run("DELETE FROM people WHERE id = 2")  # leaves a hole in the row ids
    with database.target("FROM people", ["people"], "guess", overwrite=False) as target:
        target.write(batch.append_column("guess", batch.column("id")) for batch in target.rows())
    assert {
        number == guess for number, guess in rows_of(database, "SELECT id, guess FROM people")
    } == {True}
    database.close()


def test_duckdb_types_are_plain() -> None:
    database = open_database(None)
    for expression, kind, value in [
        ("'x'::ENUM ('x', 'y')", pa.string(), "x"),
        ("'{}'::JSON", pa.string(), "{}"),
        ("170141183460469231731687303715884105727::HUGEINT", pa.decimal128(38, 0), None),
        ("1.5::DECIMAL(10, 2)", pa.decimal128(10, 2), Decimal("1.50")),
        ("[1, 2]", None, [1, 2]),
        ("18446744073709551615::UBIGINT", pa.uint64(), 2**64 - 1),
    ]:
        found = first(database, expression)
        assert kind is None or found[0] == kind
        assert value is None or found[1] == value
    database.close()


def test_partitioned_tables_are_filled_when_row_places_repeat(postgres: Database) -> None:
    postgres.run("CREATE TABLE parts (id INTEGER, age INTEGER) PARTITION BY RANGE (id)")
    postgres.run("CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10)")
    postgres.run("CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (10) TO (20)")
    postgres.run("INSERT INTO parts SELECT i, i * 10 FROM generate_series(0, 19) AS t(i)")
    with postgres.target("SELECT age FROM parts", ["parts"], "guess", overwrite=False) as target:
        target.write(batch.append_column("guess", batch.column("age")) for batch in target.rows())
    assert rows_of(postgres, f"SELECT count(*) FROM {q(postgres, 'parts')} WHERE guess = age") == [
        (20,)
    ]
