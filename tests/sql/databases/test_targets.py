"""`PREDICT table.column`: a new table, a column of the table that is selected from, a table in place of another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from elasticdl.errors import DataError, InvalidValue, OutputExists, UnknownName
from elasticdl.sql.databases import Database

from .predicting import everything, fill, predict, predictions, q, rows_of

ALL = [(1, "Ada", 36), (2, "Alan", 41), (3, None, None), (4, "Grace", 85), (5, "Alan", 41)]


def test_a_new_table_has_the_selected_columns_when_the_table_is_absent(database: Database) -> None:
    fill(database, key=True)
    before = everything(database)
    select = "SELECT id, age FROM people WHERE id > 1 ORDER BY age DESC, id -- the eldest first"
    assert predict(database, select, ["result"], "guess") == 4
    rows = rows_of(database, "SELECT * FROM result")
    assert set(rows) == {(4, 85, 170.0), (2, 41, 82.0), (5, 41, 82.0), (3, None, None)}
    assert set(rows[:1]) <= {(4, 85, 170.0), (3, None, None)}  # NULLs first or last
    assert everything(database) == before
    assert set(database.tables()) == {"people", "result"}


@pytest.mark.parametrize("key", [False, True])
def test_a_column_is_added_when_the_table_is_selected_from(database: Database, key: bool) -> None:
    fill(database, key=key)
    before = rows_of(database, "SELECT * FROM people")
    assert predict(database, "SELECT name, age FROM people", ["people"], "guess") == len(before)
    doubled = {(*row, None if row[2] is None else row[2] * 2.0) for row in before}
    assert everything(database) == doubled
    assert database.columns("people") == ["id", "name", "age", "guess"]
    assert database.tables() == ["people"]


@pytest.mark.parametrize("key", [False, True])
def test_other_rows_keep_null_when_some_are_selected(database: Database, key: bool) -> None:
    fill(database, key=key)
    select = "SELECT p.age, p.id FROM people AS p WHERE p.age < (SELECT max(age) FROM people) ORDER BY p.id LIMIT 2"
    assert predict(database, select, ["people"], "guess") == 2
    rows = rows_of(database, "SELECT id, guess FROM people WHERE guess IS NOT NULL ORDER BY id")
    assert rows == [(1, 72.0), (2, 82.0)]
    assert len(rows_of(database, "SELECT * FROM people")) == (5 if key else 6)


def test_a_star_is_selected_when_the_row_id_goes_with_it(database: Database) -> None:
    fill(database)
    with database.target("SELECT * FROM people", ["people"], "guess", overwrite=False) as target:
        rows = target.rows()
        hidden = len(target.hidden)
        assert rows.schema.names[:hidden] == list(target.hidden)
        assert rows.schema.names[hidden:] == ["id", "name", "age"]
        rows.close()
    assert database.columns("people") == ["id", "name", "age"]


def test_a_column_that_exists_is_refused_when_overwriting_is_not_asked_for(
    database: Database,
) -> None:
    fill(database)
    with pytest.raises(OutputExists, match=r"people\.age exists already"):
        database.target("SELECT * FROM people", ["people"], "age", overwrite=False)
    predict(database, "SELECT * FROM people", ["people"], "guess")
    with pytest.raises(OutputExists, match=r"people\.guess exists already"):
        database.target("SELECT * FROM people", ["people"], "guess", overwrite=False)


@pytest.mark.parametrize("key", [False, True])
def test_a_column_is_filled_anew_where_selected_when_overwriting(
    database: Database, key: bool
) -> None:
    fill(database, key=key)
    predict(database, "SELECT * FROM people", ["people"], "guess")
    database.run("UPDATE people SET age = 50")
    count = predict(
        database, "SELECT * FROM people WHERE id < 3", ["people"], "guess", overwrite=True
    )
    assert count == 2
    rows = rows_of(database, "SELECT DISTINCT id, guess FROM people ORDER BY id")
    assert rows == [(1, 100.0), (2, 100.0), (3, None), (4, 170.0), (5, 82.0)]


def test_the_selected_column_makes_way_when_the_prediction_has_its_name(database: Database) -> None:
    fill(database, key=True)
    column = "name" if database.dialect == "postgres" else "Name"
    with database.target(
        "SELECT id, age, name FROM people", ["result"], column, overwrite=False
    ) as target:
        assert target.write(predictions(target, "name")) == 5
        assert target.replaced == "name"
    rows = rows_of(database, "SELECT * FROM result WHERE id = 1")
    assert rows == [(1, 36, 72.0)]


def test_a_column_of_another_type_is_refused_when_overwriting(database: Database) -> None:
    fill(database)
    before = everything(database)
    with pytest.raises(InvalidValue, match=r"people\.name holds string.*double"):
        predict(database, "SELECT id, age FROM people", ["people"], "name", overwrite=True)
    with pytest.raises(InvalidValue, match=r"people\.id holds int"):
        predict(database, "SELECT age FROM people", ["people"], "id", overwrite=True)
    assert everything(database) == before


def test_another_table_is_replaced_when_overwriting(database: Database) -> None:
    fill(database, key=True)
    fill(database, "result")
    with pytest.raises(OutputExists, match="result exists already, and is not the one"):
        predict(database, "SELECT id, age FROM people", ["result"], "guess")
    assert predict(database, "SELECT id, age FROM people", ["result"], "guess", overwrite=True) == 5
    assert database.columns("result") == ["id", "age", "guess"]
    assert len(everything(database, "result")) == 5
    assert set(database.tables()) == {"people", "result"}


def test_several_columns_are_added_when_there_are_probabilities(database: Database) -> None:
    fill(database, key=True)
    for table in ("people", "result"):
        with database.target(
            "SELECT id, age FROM people", [table], "class", overwrite=False
        ) as target:
            batches = [
                batch.append_column("class", pa.array(["yes"] * batch.num_rows).dictionary_encode())
                .append_column(
                    "class_probability_yes", pa.array([0.5] * batch.num_rows, pa.float32())
                )
                .append_column("sure", pa.array([True] * batch.num_rows))
                for batch in target.rows()
            ]
            assert target.write(batches) == 5
        found = rows_of(database, f"SELECT * FROM {table} WHERE id = 2")[0]
        assert found[-3:] == ("yes", 0.5, True)


def test_a_table_is_made_when_no_row_is_selected(database: Database) -> None:
    fill(database)
    assert predict(database, "SELECT id, age FROM people WHERE id > 99", ["result"], "guess") == 0
    assert database.columns("result") == ["id", "age", "guess"]
    assert predict(database, "SELECT id, age FROM people WHERE id > 99", ["people"], "guess") == 0
    assert database.columns("people")[-1] == "guess"


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("SELECT a.age FROM people a JOIN people b ON a.id = b.id", "JOIN"),
        ("SELECT age FROM people GROUP BY age", "GROUP BY"),
        ("SELECT DISTINCT age FROM people", "DISTINCT"),
        ("SELECT max(age) AS age FROM people", "MAX"),
        ("SELECT age FROM people UNION ALL SELECT age FROM people", "not one plain SELECT"),
        ("SELECT age FROM (SELECT * FROM people) AS p", "no table itself"),
        ("WITH p AS (SELECT * FROM people) SELECT age FROM p", "a table itself"),
        ("SELECT age FROM others WHERE id IN (SELECT id FROM people)", "another table's"),
    ],
)
def test_rows_that_are_not_the_tables_are_refused_when_it_is_the_target(
    database: Database, select: str, why: str
) -> None:
    fill(database)
    fill(database, "others")
    with pytest.raises(InvalidValue, match=f"{why}.*Write to a new table"):
        database.target(select, ["people"], "guess", overwrite=True)
    assert predict(database, select, ["result"], "guess") >= 1


def test_a_row_is_refused_when_the_select_gives_it_twice(postgres: Database) -> None:
    fill(postgres)
    with pytest.raises((InvalidValue, DataError), match="than once"):
        predict(
            postgres,
            "SELECT age, json_array_elements('[1, 2]')::text FROM people",
            ["people"],
            "guess",
        )
    assert postgres.columns("people") == ["id", "name", "age"]


def test_a_view_is_refused_when_it_is_the_target(database: Database) -> None:
    fill(database)
    database.run("CREATE VIEW grown AS SELECT * FROM people WHERE age > 18")
    for select in ("SELECT * FROM grown", "SELECT * FROM people"):
        with pytest.raises(InvalidValue, match="grown is a view"):
            database.target(select, ["grown"], "guess", overwrite=True)
    assert predict(database, "SELECT * FROM grown", ["result"], "guess") == 5


def test_temporary_tables_work_or_are_refused(database: Database) -> None:
    database.run("CREATE TEMPORARY TABLE few AS SELECT 1 AS id, 20 AS age")
    assert predict(database, "SELECT * FROM few", ["result"], "guess") == 1
    assert rows_of(database, "SELECT * FROM result") == [(1, 20, 40.0)]
    if database.dialect == "mysql":
        with pytest.raises(InvalidValue, match="a temporary table"):
            predict(database, "SELECT * FROM few", ["few"], "guess")
    else:
        assert predict(database, "SELECT * FROM few", ["few"], "guess") == 1
        assert rows_of(database, "SELECT * FROM few") == [(1, 20, 40.0)]


def test_all_stays_as_it_was_when_the_predictions_fail(database: Database) -> None:
    fill(database)
    fill(database, "result")
    before = everything(database), everything(database, "result")

    for table in ("people", "result", "fresh"):
        with (
            pytest.raises(ZeroDivisionError),
            database.target("SELECT * FROM people", [table], "guess", overwrite=True) as target,
        ):

            def failing() -> object:
                yield from predictions(target, "guess")
                raise ZeroDivisionError

            target.write(failing())  # type: ignore[arg-type]
        assert (everything(database), everything(database, "result")) == before
        assert set(database.tables()) == {"people", "result"}


def test_a_missing_name_is_told_when_the_rows_are_asked_for(database: Database) -> None:
    fill(database)
    with (
        pytest.raises(UnknownName, match=r"no column 'agee'.*Did you mean 'age'"),
        database.target("SELECT agee FROM people", ["people"], "guess", overwrite=False) as target,
    ):
        target.rows()
    with (
        pytest.raises(UnknownName, match=r"no table '.*peeple'.*Did you mean 'people'"),
        database.target("SELECT age FROM peeple", ["result"], "guess", overwrite=False) as target,
    ):
        target.rows()
    assert predict(database, "SELECT age FROM people", ["result"], "guess") == 6


ODD = [
    'a "b"',
    "it's",
    "back`tick",
    "semi; DROP TABLE people; --",
    "percent %s %d %%",
    "grüße 你好",
    "select",
    "x' OR '1'='1",
    "{brace} $1 ? :name @x",
    "back\\slash",
    "MixedCase",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_only_names_when_used_everywhere(database: Database, name: str) -> None:
    fill(database)
    table, column = name, f"{name} column"
    fill(database, table, key=True)
    select = f"SELECT id AS {q(database, name + '2')}, age FROM {q(database, table)}"
    assert predict(database, select, [table], column) == 5
    assert predict(database, select, [table + " new"], column) == 5
    assert predict(database, select, [table + " new"], column, overwrite=True) == 5
    assert database.columns(table) == ["id", "name", "age", column]
    assert database.columns(table + " new") == [name + "2", "age", column]
    assert set(database.tables()) == {"people", table, table + " new"}
    found = rows_of(
        database, f"SELECT {q(database, column)} FROM {q(database, table)} WHERE id = 1"
    )
    assert found == [(72.0,)]
    assert len(rows_of(database, "SELECT * FROM people")) == 6


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_nothing_can_have_are_refused(database: Database, name: str) -> None:
    with pytest.raises(InvalidValue, match="no name"):
        database.target("SELECT 1 AS age", [name], "guess", overwrite=False)
    with pytest.raises(InvalidValue, match="no name"):
        database.target("SELECT 1 AS age", ["t"], name, overwrite=False)


def test_types_are_kept_when_rows_go_into_a_new_table(database: Database) -> None:
    kinds = {
        "duckdb": "a DECIMAL(30,5), b UUID, c DATE, d TIMESTAMP, e INTEGER[], f BLOB",
        "sqlite": "a DECIMAL(30,5), b CHAR(36), c DATE, d TIMESTAMP, e BOOLEAN, f BLOB",
        "postgres": "a NUMERIC(30,5), b UUID, c DATE, d TIMESTAMPTZ, e INTEGER[], f BYTEA, g INET, h NUMERIC",
        "mysql": "a DECIMAL(30,5), b ENUM('x', 'y'), c DATE, d DATETIME(6), e BIGINT UNSIGNED, f BLOB",
    }[database.dialect]
    database.run(f"CREATE TABLE t (age INTEGER, {kinds})")
    database.run(
        "INSERT INTO t (age, a, c) VALUES (1, 1234567890123456789012345.12345, '2024-02-29')"
    )
    predict(database, "SELECT * FROM t", ["result"], "guess")
    with (
        database.select("SELECT * FROM t") as before,
        database.select("SELECT * FROM result") as after,
    ):
        assert list(before.schema) == list(after.schema)[:-1]
    digits = {"sqlite": "1.23"}.get(database.dialect, "1234567890123456789012345.12345")
    assert str(rows_of(database, "SELECT a FROM result")[0][0]).startswith(digits)
