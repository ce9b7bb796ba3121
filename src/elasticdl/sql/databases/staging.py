"""Putting predictions in their place by one transaction: DuckDB, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from elasticdl.sql.databases.column_types import plain, plain_type, sql_type
from elasticdl.sql.databases.names import quote, quoted
from elasticdl.sql.databases.target import ROW, Found, Hands, RowId, check_table
from elasticdl.sql.rows import Rows

__all__ = ["InTransaction", "create_table", "put_table"]


def create_table(
    dialect: str, name: str, fields: Sequence[pa.Field], temporary: bool = False
) -> str:
    """`CREATE TABLE`, of a name that is quoted already."""
    columns = ", ".join(f"{quote(dialect, f.name)} {sql_type(dialect, f.type)}" for f in fields)
    return f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {name} ({columns})"


def put_table(hands: Hands, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
    """Write rows to a new table, in one transaction: `write_table` of a database."""
    parts = list(name)
    table = quoted(hands.dialect, parts)
    hands.begin()
    try:
        with rows:
            if before := check_table(hands, parts, replace=replace):
                hands.execute(f"DROP TABLE {quoted(hands.dialect, before.parts)}")
            fields = [pa.field(field.name, plain_type(field.type)) for field in rows.schema]
            hands.execute(create_table(hands.dialect, table, fields))
            found = hands.find(parts)
            assert found is not None
            count = 0
            for batch in rows:
                hands.append(found.parts, plain(batch))
                count += batch.num_rows
        hands.commit()
    except BaseException:
        hands.rollback()
        raise
    return count


class InTransaction:
    """A `target.Finish` for databases whose transactions hold tables and columns too.

    Args:
      row_ids: what tells a table's rows apart.
      unfillable: why no column of a table can be filled.
    """

    def __init__(
        self,
        hands: Hands,
        row_ids: Callable[[Found], Sequence[RowId]],
        unfillable: Callable[[Found], str],
    ) -> None:
        self._hands, self._row_ids, self._unfillable = hands, row_ids, unfillable
        self._dialect = hands.dialect
        self._made: list[str] = []

    def unfillable(self, found: Found) -> str:
        return self._unfillable(found)

    def row_ids(self, found: Found) -> Sequence[RowId]:
        self._ids = self._row_ids(found)
        return self._ids

    def row_source(self) -> None:
        return None

    def keep_rows(self, select: str, kept: str) -> None:
        name, row = quote(self._dialect, kept), quote(self._dialect, ROW)
        # On lines of its own: the SELECT may end in a comment.
        self._hands.execute(
            f"CREATE TEMPORARY TABLE {name} AS SELECT row_number() OVER () AS {row}, kept.* FROM (\n{select}\n) AS kept"
        )
        self._made.append(name)

    def keep_predictions(self, kept: str, fields: Sequence[pa.Field], num_ids: int) -> None:
        name = quote(self._dialect, kept)
        self._hands.execute(create_table(self._dialect, name, fields, temporary=True))
        self._made.append(name)

    def fill(self, found: Found, kept: str, fields: Sequence[pa.Field], new: Sequence[str]) -> int:
        table, source = quoted(self._dialect, found.parts), quote(self._dialect, kept)
        names = {field.name: quote(self._dialect, field.name) for field in fields}
        for field in fields:
            if field.name in new:
                kind = sql_type(self._dialect, field.type)
                self._hands.execute(f"ALTER TABLE {table} ADD COLUMN {names[field.name]} {kind}")
        values = ", ".join(f"{name} = {source}.{name}" for name in names.values())
        matches = " AND ".join(
            f"filled.{part.column} = {source}.{quote(self._dialect, f'{ROW}_{number}')}{part.match_as}"
            for number, part in enumerate(self._ids)
        )
        changed = self._hands.execute(
            f"UPDATE {table} AS filled SET {values} FROM {source} WHERE {matches}"
        )
        self._drop()
        return changed or 0

    def create(
        self,
        parts: Sequence[str],
        columns: Sequence[str],
        rows: str,
        kept: str,
        predicted: Sequence[str],
    ) -> None:
        if self._hands.find(parts) is not None:
            self._hands.execute(f"DROP TABLE {quoted(self._dialect, parts)}")
        row = quote(self._dialect, ROW)
        names = [f"kept.{quote(self._dialect, name)}" for name in columns]
        names += [f"made.{quote(self._dialect, name)}" for name in predicted]
        self._hands.execute(
            f"CREATE TABLE {quoted(self._dialect, parts)} AS SELECT {', '.join(names)} "
            f"FROM {quote(self._dialect, rows)} AS kept JOIN {quote(self._dialect, kept)} AS made "
            f"ON kept.{row} = made.{row} ORDER BY kept.{row}"
        )
        self._drop()

    def _drop(self) -> None:
        while self._made:
            self._hands.execute(f"DROP TABLE {self._made.pop()}")
