"""What the tests of targets share: a table, and predictions for its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from elasticdl.sql.databases import Database, Target
from elasticdl.sql.databases.names import quote, quoted


def q(database: Database, *parts: str) -> str:
    return quoted(database.dialect, parts)


def fill(database: Database, name: str = "people", key: bool = False) -> None:
    """Five people, of whom two are alike."""
    key_text = "id INTEGER NOT NULL PRIMARY KEY" if key else "id INTEGER"
    database.run(f"CREATE TABLE {q(database, name)} ({key_text}, name VARCHAR(20), age INTEGER)")
    rows = "(1, 'Ada', 36), (2, 'Alan', 41), (3, NULL, NULL), (4, 'Grace', 85), (5, 'Alan', 41)"
    if not key:
        rows += ", (5, 'Alan', 41)"
    database.run(f"INSERT INTO {q(database, name)} VALUES {rows}")


def rows_of(database: Database, sql: str) -> list[tuple[Any, ...]]:
    table = database.select(sql).to_table()
    return [tuple(row.values()) for row in table.to_pylist()]


def predictions(target: Target, column: str, by: str = "age") -> Iterator[pa.RecordBatch]:
    """Twice the age, as it is asked for while rows still come."""
    for batch in target.rows():
        values = [None if value is None else value * 2.0 for value in batch.column(by).to_pylist()]
        yield batch.append_column(column, pa.array(values, pa.float64()))


def predict(
    database: Database, select: str, table: list[str], column: str, overwrite: bool = False
) -> int:
    with database.target(select, table, column, overwrite=overwrite) as target:
        return target.write(predictions(target, column))


def everything(database: Database, table: str = "people") -> set[tuple[Any, ...]]:
    return set(rows_of(database, f"SELECT * FROM {quote(database.dialect, table)}"))
