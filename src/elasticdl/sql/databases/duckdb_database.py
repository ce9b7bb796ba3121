"""DuckDB: a file, or memory, or the CSV and Parquet files that a SELECT names."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from elasticdl.errors import ElasticDLError, InvalidValue, NotFound
from elasticdl.sql.databases.base import Target
from elasticdl.sql.databases.column_types import flat, flat_schema
from elasticdl.sql.databases.duckdb_failures import trouble
from elasticdl.sql.databases.failures import as_error, columns_read
from elasticdl.sql.databases.names import quoted
from elasticdl.sql.databases.staging import InTransaction, put_table
from elasticdl.sql.databases.streams import BATCH_ROWS, Streams
from elasticdl.sql.databases.target import Found, RowId, TableTarget, check_table, temporary_name
from elasticdl.sql.databases.url import MEMORY, Address
from elasticdl.sql.rows import Rows

__all__ = ["DuckDBDatabase"]

_KINDS = {"BASE TABLE": "table", "LOCAL TEMPORARY": "table", "VIEW": "a view"}
_ANSWERS = (["Count"], ["Success"])
"""The columns of what a statement answers that gives no rows."""


class DuckDBDatabase:
    """See `base.Database`. Options of the address are DuckDB's settings: `?memory_limit=2GB&threads=2`."""

    dialect = "duckdb"

    def __init__(self, address: Address) -> None:
        import duckdb

        self.shown = address.shown
        self.changed: int | None = None
        self._streams = Streams()
        self._in_target = False
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="duckdb")
        # Names in SQL are the database's alone: not those of Python variables that happen to be around.
        settings: dict[str, Any] = {"python_enable_replacements": False, **address.options}
        if address.path != MEMORY:
            settings = {**_access(Path(address.path), self.shown), **settings}
        try:
            self._connection: Any = duckdb.connect(address.path, config=settings)
        except duckdb.InvalidInputException as error:
            raise InvalidValue(f"{self.shown}: {str(error).partition(': ')[2]}.") from None
        except duckdb.Error as error:
            raise as_error(trouble(error), self.shown) from None

    def run(self, sql: str) -> Rows | None:
        self.changed = None
        with self._failures(sql):
            self._streams.make_room()
            statements = self._connection.extract_statements(sql)
            relation = self._heard(lambda: self._connection.sql(sql))
            if relation is None or not statements:
                return None
            if statements[-1].type.name != "SELECT" and list(relation.columns) in _ANSWERS:
                self.changed = _count(relation)
                return None
        return self._rows(relation, sql)

    def select(self, sql: str) -> Rows:
        with self._failures(sql):
            self._streams.make_room()
            relation = self._heard(lambda: self._connection.sql(sql))
        if relation is None:
            raise InvalidValue(f"This gives no rows: {sql[:60]!r}. Give a SELECT.")
        return self._rows(relation, sql)

    def tables(self) -> list[str]:
        rows = self._ask(
            "SELECT table_schema, table_name, table_catalog IN ('temp', current_database()) AND "
            "table_schema IN ('main', current_schema()), table_catalog FROM information_schema.tables "
            "WHERE table_catalog NOT IN ('system') ORDER BY ALL"
        )
        return [
            name if near else f"{catalog}.{schema}.{name}" for schema, name, near, catalog in rows
        ]

    def columns(self, table: str) -> list[str]:
        found = self.find([table]) or self.find(table.split("."))
        return list(self.schema(found).names) if found else []

    def write_table(self, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
        return put_table(self, name, rows, replace=replace)

    def check_table(self, name: Sequence[str], *, replace: bool) -> None:
        check_table(self, name, replace=replace)

    def target(self, select: str, table: Sequence[str], column: str, *, overwrite: bool) -> Target:
        finish = InTransaction(self, lambda found: [RowId("rowid")], self._unfillable)
        return TableTarget(self, finish, select, table, column, overwrite)

    def close(self) -> None:
        self._streams.drop()
        self._connection.close()
        self._worker.shutdown(wait=False)

    # What a target needs.

    def find(self, parts: Sequence[str]) -> Found | None:
        *outer, name = parts
        wanted = {0: "near", 1: "(schema = $outer AND catalog IN ('temp', current_database()) OR "
                  "catalog = $outer AND schema = 'main')", 2: "catalog || '.' || schema = $outer"}  # fmt: skip
        if len(outer) not in wanted:
            return None
        rows = self._ask(
            "SELECT whole[1], whole[2], whole[3], kind FROM ("
            "SELECT [table_catalog, table_schema, table_name] AS whole, "
            "lower(table_catalog) AS catalog, lower(table_schema) AS schema, table_type AS kind, "
            "table_catalog IN ('temp', current_database()) AND table_schema IN ('main', current_schema()) AS near "
            f"FROM information_schema.tables WHERE lower(table_name) = $name) WHERE {wanted[len(outer)]} "
            "ORDER BY catalog <> 'temp', schema = 'main'",
            {"name": name.lower(), **({"outer": ".".join(outer).lower()} if outer else {})},
        )
        return (
            Found(tuple(rows[0][:3]), _KINDS.get(rows[0][3], rows[0][3].lower())) if rows else None
        )

    def has_schema(self, outer: Sequence[str]) -> bool:
        wanted = ".".join(outer).lower()
        return wanted in {name.lower() for name in self.schemas()}

    def schemas(self) -> list[str]:
        rows = self._ask(
            "SELECT schema_name, catalog_name, catalog_name IN ('temp', current_database()) "
            "FROM information_schema.schemata WHERE catalog_name <> 'system' ORDER BY ALL"
        )
        names = {name for name, _, near in rows if near}
        names |= {catalog for name, catalog, _ in rows if name == "main"}
        return sorted(names | {f"{catalog}.{name}" for name, catalog, _ in rows})

    def schema(self, found: Found) -> pa.Schema:
        with self.select(f"SELECT * FROM {quoted(self.dialect, found.parts)} LIMIT 0") as rows:
            return rows.schema

    def execute(self, sql: str) -> int | None:
        with self._failures(sql):
            self._streams.make_room()
            return _count(self._connection.sql(sql))

    def append(self, parts: Sequence[str], batch: pa.RecordBatch) -> None:
        view = temporary_name()
        with self._failures():
            self._streams.make_room()
            self._connection.register(view, pa.Table.from_batches([batch]))
            try:
                self._connection.execute(
                    f'INSERT INTO {quoted(self.dialect, parts)} SELECT * FROM "{view}"'
                )
            finally:
                self._connection.unregister(view)

    def begin(self) -> None:
        import duckdb

        self._streams.make_room()
        try:
            self._connection.execute("BEGIN TRANSACTION")
        except duckdb.TransactionException:
            raise InvalidValue(
                "A transaction is open: end it with COMMIT or ROLLBACK first."
            ) from None
        self._in_target = True

    def commit(self) -> None:
        self.execute("COMMIT")
        self._in_target = False

    def rollback(self) -> None:
        import duckdb

        self._streams.drop()
        self._in_target = False
        with suppress(duckdb.Error):
            self._connection.execute("ROLLBACK")

    def _unfillable(self, found: Found) -> str:
        names = [name.lower() for name in self.schema(found).names]
        return "it has a column called rowid, which hides its row ids" if "rowid" in names else ""

    def _ask(self, sql: str, values: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
        with self._failures(sql):
            self._streams.make_room()
            return list(self._connection.execute(sql, values or {}).fetchall())

    def _rows(self, relation: Any, sql: str) -> Rows:
        with self._failures(sql):
            reader = self._heard(lambda: relation.to_arrow_reader(BATCH_ROWS))
        schema = flat_schema(reader.schema)

        def batches() -> Iterator[pa.RecordBatch]:
            with self._failures(sql):
                while (batch := self._heard(lambda: next(reader, None))) is not None:
                    yield flat(batch, schema)

        return self._streams.open(schema, batches(), reader.close)

    def _heard(self, work: Callable[[], Any]) -> Any:
        """Work of a query, in a thread: DuckDB hears of no signal while it works, so it is told of Ctrl-C."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        future = self._worker.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            self._connection.interrupt()
            with suppress(Exception):  # that it was interrupted
                future.result()
            raise

    @contextmanager
    def _failures(self, sql: str = "") -> Iterator[None]:
        """DuckDB's errors, and those of a stream of it, as ours."""
        import duckdb

        try:
            yield
        except ElasticDLError:
            raise
        except (duckdb.Error, RuntimeError, pa.ArrowException, OSError) as error:
            told = trouble(error)
            # An error ended the transaction: without this, no name could be looked up.
            if self._in_target:
                self.rollback()
            columns = lambda: columns_read(sql, self.dialect, self.columns)  # noqa: E731
            raise as_error(told, self.shown, self.tables, columns) from None


def _count(relation: Any) -> int | None:
    """How many rows a statement says that it changed."""
    if relation is None or list(relation.columns) != ["Count"]:
        return None
    answer = relation.fetchall()
    return int(answer[0][0]) if answer else None


def _access(path: Path, shown: str) -> dict[str, str]:
    """How a file can be opened: a read-only one for reading."""
    directory = path.absolute().parent
    if not directory.is_dir():
        absolute = Path("/", path)
        hint = (
            f" For an absolute path write four slashes: duckdb:///{absolute}."
            if absolute.parent.is_dir()
            else ""
        )
        raise NotFound(f"{shown}: there is no directory {str(directory)!r}.{hint}")
    return {"access_mode": "READ_ONLY"} if path.exists() and not os.access(path, os.W_OK) else {}
