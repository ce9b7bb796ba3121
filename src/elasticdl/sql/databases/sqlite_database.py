"""SQLite: a file, through Python's own module."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_path
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.compute as pc

from elasticdl.errors import InvalidValue, NotFound, nearest
from elasticdl.sql.databases.base import Target
from elasticdl.sql.databases.column_types import sql_type
from elasticdl.sql.databases.failures import Trouble, as_error, columns_read
from elasticdl.sql.databases.names import quote, quoted
from elasticdl.sql.databases.sqlite_rows import read_rows
from elasticdl.sql.databases.staging import InTransaction, put_table
from elasticdl.sql.databases.streams import Streams
from elasticdl.sql.databases.target import (
    ROW,
    Found,
    RowId,
    TableTarget,
    check_table,
    temporary_name,
)
from elasticdl.sql.databases.url import MEMORY, Address
from elasticdl.sql.rows import Rows

__all__ = ["SQLiteDatabase"]

_OPTIONS = ("cache", "immutable", "mode", "nolock", "vfs")
_READING = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_PATTERNS = (
    ("table", r"no such table: (.+)"),
    ("column", r"no such column: (.+)"),
    ("exists", r"already exists"),
    ("stopped", r"^interrupted$"),
    ("locked", r"database (?:table )?is locked"),
    ("lost", r"closed database"),
    ("data", r"Could not decode|constraint failed|integer overflow|out of range|datatype mismatch"),
    ("other", r"not a database|unable to open|disk I/O|readonly|malformed|is full"),
)


class SQLiteDatabase:
    """See `base.Database`. Options of the address are those of SQLite's own: `?mode=ro`."""

    dialect = "sqlite"

    def __init__(self, address: Address) -> None:
        self.shown = address.shown
        self.changed: int | None = None
        self._streams = Streams()
        with self._failures():
            # Several threads may use it, one after the other. Transactions are begun by statements alone.
            self._connection = sqlite3.connect(
                _uri(address), uri=True, timeout=10, isolation_level=None, check_same_thread=False
            )
            # While it works, Python gets a chance to notice Ctrl-C.
            self._connection.set_progress_handler(lambda: 0, 100_000)
            self._connection.execute("PRAGMA schema_version").close()

    def run(self, sql: str) -> Rows | None:
        self.changed = None
        with self._failures(sql):
            self._streams.make_room()
            declared = self._declared(sql)
            cursor = self._connection.execute(sql)
            if cursor.description is None:
                self.changed = cursor.rowcount if cursor.rowcount >= 0 else None
                cursor.close()
                return None
        return self._rows(cursor, declared, sql)

    def select(self, sql: str) -> Rows:
        rows = self.run(sql)
        if rows is None:
            raise InvalidValue(f"This gives no rows: {sql[:60]!r}. Give a SELECT.")
        return rows

    def tables(self) -> list[str]:
        found = []
        for schema in self.schemas():
            inner = f"SELECT name FROM {quote(self.dialect, schema)}.sqlite_master"
            rows = self._ask(
                f"{inner} WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            )
            found += [
                name if schema in ("main", "temp") else f"{schema}.{name}" for (name,) in rows
            ]
        return sorted(found)

    def columns(self, table: str) -> list[str]:
        found = self.find([table]) or self.find(table.split("."))
        return list(self.schema(found).names) if found else []

    def write_table(self, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
        return put_table(self, name, rows, replace=replace)

    def check_table(self, name: Sequence[str], *, replace: bool) -> None:
        check_table(self, name, replace=replace)

    def target(self, select: str, table: Sequence[str], column: str, *, overwrite: bool) -> Target:
        return TableTarget(self, _Finish(self), select, table, column, overwrite)

    def close(self) -> None:
        self._streams.drop()
        self._connection.close()

    # What a target needs.

    def find(self, parts: Sequence[str]) -> Found | None:
        *outer, name = parts
        schemas = [
            schema
            for schema in self.schemas()
            if not outer or [schema.lower()] == [outer[0].lower()]
        ]
        for schema in schemas if len(outer) < 2 else []:
            rows = self._ask(
                f"SELECT name, type, sql FROM {quote(self.dialect, schema)}.sqlite_master "
                "WHERE type IN ('table', 'view') AND lower(name) = lower(?)",
                name,
            )
            if rows:
                virtual = str(rows[0][2]).upper().startswith("CREATE VIRTUAL")
                kind = (
                    "a view" if rows[0][1] == "view" else "a virtual table" if virtual else "table"
                )
                return Found((schema, rows[0][0]), kind)
        return None

    def has_schema(self, outer: Sequence[str]) -> bool:
        return ".".join(outer).lower() in {name.lower() for name in self.schemas()}

    def schema(self, found: Found) -> pa.Schema:
        with self.select(f"SELECT * FROM {quoted(self.dialect, found.parts)} LIMIT 0") as rows:
            return rows.schema

    def execute(self, sql: str) -> int | None:
        self.run(sql)
        return self.changed

    def append(self, parts: Sequence[str], batch: pa.RecordBatch) -> None:
        columns = [_written(column).to_pylist() for column in batch.columns]
        marks = ", ".join("?" * len(columns))
        with self._failures():
            self._streams.make_room()
            insert = f"INSERT INTO {quoted(self.dialect, parts)} VALUES ({marks})"
            self._connection.executemany(insert, zip(*columns, strict=True)).close()

    def begin(self) -> None:
        if self._connection.in_transaction:
            raise InvalidValue("A transaction is open: end it with COMMIT or ROLLBACK first.")
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        self._streams.drop()
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK").close()

    def row_ids(self, found: Found) -> list[RowId]:
        rows = self._ask(
            "SELECT name, pk FROM pragma_table_info(?, ?)", found.parts[1], found.parts[0]
        )
        taken = {name.lower() for name, _ in rows}
        for name in ("rowid", "_rowid_", "oid"):
            with suppress(sqlite3.Error):
                if name not in taken:
                    self._connection.execute(
                        f"SELECT {name} FROM {quoted(self.dialect, found.parts)} LIMIT 0"
                    ).close()
                    return [RowId(name)]
        keys = sorted((place, name) for name, place in rows if place)
        return [RowId(quote(self.dialect, name)) for _, name in keys]

    def unfillable(self, found: Found) -> str:
        schema, table = found.parts
        for where in {schema, "temp"}:
            rows = self._ask(
                f"SELECT name, sql FROM {quote(self.dialect, where)}.sqlite_master "
                "WHERE type = 'trigger' AND lower(tbl_name) = lower(?)",
                table,
            )
            for name, sql in rows:
                if re.search(
                    r"\bTRIGGER\b.*?\bUPDATE\b.*?\bON\b", str(sql), re.IGNORECASE | re.DOTALL
                ):
                    return f"its trigger {name!r} would run for every row"
        return "" if self.row_ids(found) else "it has no row ids"

    def declared(self, select: str) -> list[tuple[str, str]]:
        """The columns of a SELECT with the types that they were declared with: a view knows them."""
        view = temporary_name()
        self._connection.execute(f"CREATE TEMP VIEW {view} AS {select}").close()
        try:
            columns = "SELECT name, type FROM pragma_table_info(?, 'temp')"
            return self._connection.execute(columns, (view,)).fetchall()
        finally:
            self._connection.execute(f"DROP VIEW temp.{view}").close()

    def _declared(self, sql: str) -> list[str]:
        if not _READING.match(sql):
            return []
        with suppress(sqlite3.Error):  # what is wrong with it will be said when it is run
            return [declared for _, declared in self.declared(sql)]
        return []

    def _rows(self, cursor: sqlite3.Cursor, declared: list[str], sql: str) -> Rows:
        names = [column[0] for column in cursor.description]
        if len(declared) != len(names):
            declared = [""] * len(names)
        with self._failures(sql):
            schema, batches, close = read_rows(cursor.fetchmany, names, declared)
            cursor.close()
        return self._streams.open(schema, batches, close)

    def schemas(self) -> list[str]:
        """The databases of the connection, in the order in which names are looked up."""
        names = [name for _, name, _ in self._ask("PRAGMA database_list")]
        return ["temp", *(name for name in names if name != "temp")]

    def _ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with self._failures(sql):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def _failures(self, sql: str = "") -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            columns = lambda: columns_read(sql, self.dialect, self.columns)  # noqa: E731
            raise as_error(_trouble(error), self.shown, self.tables, columns) from None


class _Finish(InTransaction):
    """As elsewhere, but SQLite forgets what columns were declared as when it makes a table of a SELECT."""

    def __init__(self, database: SQLiteDatabase) -> None:
        super().__init__(database, database.row_ids, database.unfillable)
        self._database = database
        self._columns: list[tuple[str, str]] = []

    def keep_rows(self, select: str, kept: str) -> None:
        with self._database._failures(select):
            self._columns = self._database.declared(select)
        columns = ", ".join(
            f"{quote('sqlite', name)} {declared}" for name, declared in self._columns
        )
        name = quote("sqlite", kept)
        self._database.execute(
            f"CREATE TEMPORARY TABLE {name} ({ROW} INTEGER PRIMARY KEY, {columns})"
        )
        self._database.execute(
            f"INSERT INTO {name} SELECT row_number() OVER (), kept.* FROM (\n{select}\n) AS kept"
        )
        self._made.append(name)

    def keep_predictions(self, kept: str, fields: Sequence[pa.Field], num_ids: int) -> None:
        super().keep_predictions(kept, fields, num_ids)
        self._fields = list(fields)[num_ids:]

    def create(
        self,
        parts: Sequence[str],
        columns: Sequence[str],
        rows: str,
        kept: str,
        predicted: Sequence[str],
    ) -> None:
        if self._database.find(parts) is not None:
            self._database.execute(f"DROP TABLE {quoted('sqlite', parts)}")
        declared = [
            f"{quote('sqlite', name)} {text}" for name, text in self._columns if name in columns
        ]
        declared += [
            f"{quote('sqlite', f.name)} {sql_type('sqlite', f.type)}" for f in self._fields
        ]
        names = [f"kept.{quote('sqlite', name)}" for name in columns]
        names += [f"made.{quote('sqlite', name)}" for name in predicted]
        table = quoted("sqlite", parts)
        self._database.execute(f"CREATE TABLE {table} ({', '.join(declared)})")
        self._database.execute(
            f"INSERT INTO {table} SELECT {', '.join(names)} FROM {quote('sqlite', kept)} AS made "
            f"JOIN {quote('sqlite', rows)} AS kept ON kept.{ROW} = made.{ROW} ORDER BY kept.{ROW}"
        )
        self._drop()


def _uri(address: Address) -> str:
    for option in address.options:
        if option not in _OPTIONS:
            raise InvalidValue(
                f"{address.shown}: unknown option {option!r}. {nearest(option, _OPTIONS)}"
            )
    if address.path == MEMORY:
        return "file::memory:"
    path = Path(address.path)
    if not path.absolute().parent.is_dir():
        raise NotFound(f"{address.shown}: there is no directory {str(path.absolute().parent)!r}.")
    return f"file:{quote_path(address.path)}?{urlencode(dict(address.options))}"


def _written(column: pa.Array) -> pa.Array:
    """Times and decimals as texts, of which SQLite makes what it can."""
    kind = column.type
    tests = (pa.types.is_temporal, pa.types.is_decimal)
    return pc.cast(column, pa.string()) if any(test(kind) for test in tests) else column


def _trouble(error: sqlite3.Error | sqlite3.Warning) -> Trouble:
    words = str(error)
    for kind, pattern in _PATTERNS:
        if match := re.search(pattern, words):
            return Trouble(kind, words, match[1] if match.groups() else "")
    return Trouble("data" if isinstance(error, sqlite3.DataError) else "statement", words)
