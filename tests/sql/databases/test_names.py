"""Names as they are written in our clauses and in a SELECT: with quotes and without, as each database reads them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from elasticdl.errors import ElasticDLError, UnknownName
from elasticdl.sql.databases import Database
from elasticdl.sql.databases.names import names_meant
from elasticdl.sql.parse import parse
from elasticdl.sql.rows import Rows
from elasticdl.sql.statements import Evaluate, Predict

from .predicting import everything, fill, predict, predictions, rows_of


def read(database: Database, text: str) -> tuple[str, list[str], str]:
    """The SELECT, the table and the column of a statement, as a session hands them on."""
    (statement,) = parse(text, database.dialect)
    assert isinstance(statement, Predict)
    *table, column = names_meant(database.dialect, statement.target)
    return statement.select, table, column


def run(database: Database, text: str, overwrite: bool = False) -> int:
    return predict(database, *read(database, f"{text} USING m"), overwrite=overwrite)


def test_only_the_table_in_quotes_is_replaced_when_postgres_has_both(postgres: Database) -> None:
    for name in ("people", "mixed", "Mixed"):
        fill(postgres, name)
    before = everything(postgres, "mixed")
    select = "SELECT id, age FROM people"
    assert run(postgres, f'{select} PREDICT "Mixed".guess', overwrite=True) == 6
    assert everything(postgres, "mixed") == before
    assert postgres.columns("Mixed") == ["id", "age", "guess"]
    assert run(postgres, f"{select} PREDICT Mixed.Guess", overwrite=True) == 6
    assert postgres.columns("mixed") == ["id", "age", "guess"]


def test_a_table_in_quotes_is_new_when_postgres_has_it_in_small_letters(postgres: Database) -> None:
    fill(postgres)
    assert run(postgres, 'SELECT id, age FROM people PREDICT "People"."Guess"') == 6
    assert postgres.columns("People") == ["id", "age", "Guess"]
    assert postgres.columns("people") == ["id", "name", "age"]
    assert run(postgres, 'SELECT id, age FROM people PREDICT people."Age"') == 6
    assert postgres.columns("people") == ["id", "name", "age", "Age"]


@pytest.mark.parametrize("target", ["people.guess", "PEOPLE.Guess"])
def test_a_table_is_the_same_in_any_letters_when_the_database_says_so(
    database: Database, target: str
) -> None:
    fill(database, key=True)
    select = f"SELECT * FROM {'people' if database.dialect == 'mysql' else 'PEOPLE'}"
    target = target.replace("PEOPLE", "people") if database.dialect == "mysql" else target
    assert run(database, f"{select} WHERE id < 3 PREDICT {target}") == 2
    assert len(database.columns("people")) == 4
    assert database.tables() == ["people"]


@pytest.mark.parametrize(
    "source", ["People", "PEOPLE AS P", 'people AS "P"', "public.People", 'PUBLIC."people" p']
)
def test_a_column_is_filled_when_postgres_folds_the_selected_name(
    postgres: Database, source: str
) -> None:
    fill(postgres)
    assert run(postgres, f"SELECT * FROM {source} PREDICT People.guess") == 6
    assert rows_of(postgres, "SELECT guess FROM people WHERE id = 1") == [(72.0,)]


def test_into_writes_the_table_in_quotes_to_the_letter(postgres: Database) -> None:
    for text, name in (('"Scores"', "Scores"), ("Scores", "scores"), ("`Scores 2`", "Scores 2")):
        (statement,) = parse(f"SELECT * FROM t EVALUATE m LABEL y INTO {text}", "postgres")
        assert isinstance(statement, Evaluate)
        table = names_meant("postgres", statement.into)
        postgres.write_table(table, Rows.of(pa.table({"a": [1]})), replace=False)
        assert name in postgres.tables()
    assert len(postgres.tables()) == 3


@pytest.mark.parametrize("table", ["people", "fresh"])
def test_no_sql_of_ours_is_shown_when_the_select_is_refused(database: Database, table: str) -> None:
    fill(database, key=True)
    for select in ("SELECT *, age +* 2 AS b FROM people", "SELECT *, nosuch(age) AS b FROM people"):
        with (
            pytest.raises(ElasticDLError) as caught,
            database.target(select, [table], "guess", overwrite=False) as target,
        ):
            target.write(predictions(target, "guess"))
        assert "__elasticdl" not in str(caught.value)
        assert "tableoid" not in str(caught.value)
    assert everything(database)
    assert predict(database, "SELECT * FROM people", [table], "guess") == 5


def test_a_schema_is_told_when_it_is_not_there(database: Database) -> None:
    fill(database)
    for parts in (["nosuch", "fresh"], ["a", "b", "fresh"], ["a", "b", "c", "fresh"]):
        schema = ".".join(parts[:-1])
        with pytest.raises(UnknownName, match=f"no schema '{schema}' in"):
            database.target("SELECT * FROM people", parts, "guess", overwrite=True)
        with pytest.raises(UnknownName, match=f"no schema '{schema}' in"):
            database.check_table(parts, replace=True)
        with pytest.raises(UnknownName, match=f"no schema '{schema}' in"):
            database.write_table(parts, Rows.of(pa.table({"a": [1]})), replace=True)
    assert database.tables() == ["people"]


def test_a_table_is_made_in_the_schema_when_it_is_there(database: Database) -> None:
    fill(database)
    schema = {"postgres": "public", "mysql": "test"}.get(database.dialect, "main")
    assert predict(database, "SELECT * FROM people", [schema, "fresh"], "guess") == 6
    with pytest.raises(UnknownName, match=f"Did you mean '{schema}'"):
        database.target("SELECT * FROM people", [schema + "s", "new"], "guess", overwrite=True)
    assert set(database.tables()) == {"people", "fresh"}


def test_duckdb_makes_tables_in_other_files_and_schemas(database: Database) -> None:
    if database.dialect != "duckdb":
        pytest.skip("of DuckDB")
    fill(database)
    database.run("ATTACH ':memory:' AS other")
    database.run("CREATE SCHEMA other.part")
    database.run("CREATE SCHEMA here")
    for parts in (["other", "t"], ["other", "part", "t"], ["Here", "t"], ["other", "main", "u"]):
        assert predict(database, "SELECT * FROM people", parts, "guess") == 6
        assert predict(database, "SELECT * FROM people", parts, "guess", overwrite=True) == 6


@pytest.mark.parametrize("overwrite", [False, True])
def test_letters_are_told_when_the_selected_table_has_others(
    mysql: Database, postgres: Database, overwrite: bool
) -> None:
    for database in (mysql, postgres):
        fill(database)
        source = "People" if database is mysql else '"People"'
        with pytest.raises(UnknownName, match=r"no table 'People' in .* mean 'people'\?"):
            run(database, f"SELECT * FROM {source} PREDICT people.guess", overwrite=overwrite)
        with pytest.raises(UnknownName, match=r"no table '.*People' in .*Did you mean 'people'"):
            run(database, f"SELECT * FROM {source} PREDICT {source}.guess")
        assert len(everything(database)) == 5
