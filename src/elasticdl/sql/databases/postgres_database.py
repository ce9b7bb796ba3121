"""PostgreSQL, through ADBC: rows come and go by COPY, as Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote as quote_url
from urllib.parse import urlencode

import pyarrow as pa

from elasticdl.errors import ElasticDLError, InvalidValue
from elasticdl.sql.databases.base import Target
from elasticdl.sql.databases.failures import GONE, as_error, columns_read, is_of
from elasticdl.sql.databases.names import quoted
from elasticdl.sql.databases.postgres_failures import trouble
from elasticdl.sql.databases.postgres_rows import converted, readable, schema_of
from elasticdl.sql.databases.staging import InTransaction, put_table
from elasticdl.sql.databases.streams import Streams
from elasticdl.sql.databases.target import Found, RowId, TableTarget, check_table
from elasticdl.sql.databases.url import Address
from elasticdl.sql.rows import Rows

__all__ = ["PostgresDatabase"]

_READING = re.compile(r"\s*(?:\(|SELECT\b|VALUES\b|TABLE\b|WITH\b)", re.IGNORECASE)
_NO_COPY = re.compile(r"\s*(?:SHOW|EXPLAIN|FETCH|CALL|EXECUTE)\b", re.IGNORECASE)
_KINDS = {
    "r": "table",
    "p": "table",
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
}
_USER_TABLES = (
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') "
    "AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
)


class PostgresDatabase:
    """See `base.Database`. Options of the address are libpq's: `?sslmode=require`."""

    dialect = "postgres"

    def __init__(self, address: Address) -> None:
        from adbc_driver_postgresql import dbapi

        self.shown = address.shown
        self.changed: int | None = None
        self._streams = Streams()
        self._uri = _uri(address)
        self._dbapi: Any = dbapi
        self._connection: Any = None
        self._in_target = False
        self._connect()

    def run(self, sql: str) -> Rows | None:
        self.changed = None
        with self._failures(sql):
            cursor = self._start(sql)
            if not cursor.description:
                self.changed = cursor.rowcount if cursor.rowcount >= 0 else None
                cursor.close()
                return None
            return self._rows(cursor, sql)

    def select(self, sql: str) -> Rows:
        rows = self.run(sql)
        if rows is None:
            raise InvalidValue(f"This gives no rows: {sql[:60]!r}. Give a SELECT.")
        return rows

    def tables(self) -> list[str]:
        rows = self._ask(
            "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname::text ELSE n.nspname || '.' || c.relname END "
            f"AS name {_USER_TABLES} ORDER BY 1"
        )
        return [row["name"] for row in rows]

    def columns(self, table: str) -> list[str]:
        found = self.find([table]) or self.find(table.split("."))
        return list(self.schema(found).names) if found else []

    def write_table(self, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
        return put_table(self, name, rows, replace=replace)

    def check_table(self, name: Sequence[str], *, replace: bool) -> None:
        check_table(self, name, replace=replace)

    def target(self, select: str, table: Sequence[str], column: str, *, overwrite: bool) -> Target:
        finish = InTransaction(self, self._row_ids, self._unfillable)
        return TableTarget(self, finish, select, table, column, overwrite)

    def close(self) -> None:
        with suppress(Exception):
            self._streams.drop()
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()

    # What a target needs.

    def find(self, parts: Sequence[str]) -> Found | None:
        if not 0 < len(parts) < 3:
            return None
        rows = self._ask(
            "SELECT n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1::text)",
            ".".join('"' + part.replace('"', '""') + '"' for part in parts),
        )
        if not rows:
            return None
        row = rows[0]
        return Found((row["schema"], row["name"]), _KINDS.get(row["kind"], "no table"))

    def has_schema(self, outer: Sequence[str]) -> bool:
        return len(outer) == 1 and outer[0] in {*self.schemas(), "pg_temp"}

    def schemas(self) -> list[str]:
        rows = self._ask(
            "SELECT nspname::text AS name FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1"
        )
        return [row["name"] for row in rows]

    def schema(self, found: Found) -> pa.Schema:
        with self.select(f"SELECT * FROM {quoted(self.dialect, found.parts)} LIMIT 0") as rows:
            return rows.schema

    def execute(self, sql: str) -> int | None:
        self.run(sql)
        return self.changed

    def append(self, parts: Sequence[str], batch: pa.RecordBatch) -> None:
        *schema, name = parts
        place = {"db_schema_name": schema[0]} if schema else {"temporary": True}
        with self._failures():
            self._make_room()
            with self._connection.cursor() as cursor:
                cursor.adbc_ingest(name, batch, mode="append", **place)

    def begin(self) -> None:
        self._make_room()
        status = self._connection.adbc_connection.get_option("adbc.postgresql.transaction_status")
        if status != "idle":
            raise InvalidValue("A transaction is open: end it with COMMIT or ROLLBACK first.")
        self.execute("BEGIN")
        self._in_target = True

    def commit(self) -> None:
        self.execute("COMMIT")
        self._in_target = False

    def rollback(self) -> None:
        self._in_target = False
        with suppress(ElasticDLError):
            self._streams.drop()
            if self._connection is not None:
                self.execute("ROLLBACK")

    def _row_ids(self, found: Found) -> list[RowId]:
        """A row's place in its file, which stays as it is while nobody else may write."""
        self.execute("SET LOCAL lock_timeout = '60s'")
        self.execute(f"LOCK TABLE {quoted(self.dialect, found.parts)} IN SHARE ROW EXCLUSIVE MODE")
        return [RowId("tableoid", "::bigint", "::oid"), RowId("ctid", "::text", "::tid")]

    def _unfillable(self, found: Found) -> str:
        rows = self._ask(
            "SELECT tgname::text AS name FROM pg_trigger WHERE NOT tgisinternal AND tgtype & 16 > 0 "
            "AND tgenabled <> 'D' AND tgrelid = to_regclass($1::text)",
            quoted(self.dialect, found.parts),
        )
        return f"its trigger {rows[0]['name']!r} would run for its rows" if rows else ""

    def _connect(self) -> None:
        try:
            self._connection = self._dbapi.connect(self._uri, autocommit=True)
        except self._dbapi.Error as error:
            told = trouble(error)
            if told.kind == "option":
                raise InvalidValue(f"{self.shown}: {told.words}.") from None
            raise as_error(told, self.shown) from None

    def _make_room(self) -> None:
        """A free connection; a new one, if the last was lost."""
        self._streams.make_room()
        if self._connection is None:
            self._connect()

    def _start(self, sql: str) -> Any:
        self._make_room()
        options = {"adbc.postgresql.use_copy": "false"} if _NO_COPY.match(sql) else None
        cursor = self._connection.cursor(adbc_stmt_kwargs=options)
        try:
            if _READING.match(sql):
                schema = cursor.adbc_execute_schema(sql)
                sql = readable(sql, schema) if len(schema) else sql
            cursor.execute(sql)
        except BaseException:
            cursor.close()
            raise
        return cursor

    def _rows(self, cursor: Any, sql: str) -> Rows:
        reader = cursor.fetch_record_batch()
        schema = schema_of(reader.schema)
        ended = False

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal ended
            with self._failures(sql):
                for batch in reader:
                    yield converted(batch, schema)
                ended = True

        def close() -> None:
            """Also of what was not taken: the connection has to be at rest again."""
            with suppress(Exception):
                if not ended:
                    if not self._in_target:  # whose transaction would end by it
                        cursor.adbc_cancel()
                    for _ in reader:
                        pass
            with suppress(Exception):
                reader.close()
                cursor.close()

        return self._streams.open(schema, batches(), close)

    def _ask(self, sql: str, *values: str) -> list[dict[str, Any]]:
        with self._failures(sql):
            self._make_room()
            with self._connection.cursor() as cursor:
                cursor.execute(sql, values or None)
                return list(cursor.fetch_arrow_table().to_pylist())

    @contextmanager
    def _failures(self, sql: str = "") -> Iterator[None]:
        try:
            yield
        except ElasticDLError:
            raise
        except (self._dbapi.Error, pa.ArrowException, OSError) as error:
            told = trouble(error)
            if told.kind == "lost":
                lost, self._connection, self._in_target = self._connection, None, False
                with suppress(Exception):
                    lost.close()
            # An error ended the transaction: without this, no name could be looked up.
            elif self._in_target:
                self.rollback()
            columns = lambda: columns_read(sql, self.dialect, self.columns)  # noqa: E731
            raise as_error(told, self.shown, self.tables, columns) from None
        except Exception as error:
            if not is_of(error, "adbc_driver_manager", "adbc_driver_postgresql"):
                raise
            self._connection, self._in_target = None, False
            raise as_error(GONE, self.shown) from None


def _uri(address: Address) -> str:
    options = {"connect_timeout": "10", "application_name": "elasticdl", **address.options}
    login = quote_url(address.user, safe="")
    login += f":{quote_url(address.password, safe='')}" if address.password else ""
    host = f"[{address.host}]" if ":" in address.host else address.host
    place = f"{login}@{host}" if login else host
    place += f":{address.port}" if address.port else ""
    return f"postgresql://{place}/{quote_url(address.database, safe='')}?{urlencode(options, quote_via=quote_url)}"
