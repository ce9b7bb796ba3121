"""MySQL and MariaDB, through PyMySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from elasticdl.errors import ElasticDLError, InvalidValue, nearest
from elasticdl.sql.databases.base import Target
from elasticdl.sql.databases.failures import GONE, as_error, columns_read, is_of
from elasticdl.sql.databases.mysql_failures import trouble
from elasticdl.sql.databases.mysql_rows import batch_of, schema_of, written
from elasticdl.sql.databases.mysql_swap import BySwap, put_table
from elasticdl.sql.databases.names import quoted
from elasticdl.sql.databases.streams import BATCH_ROWS, Streams
from elasticdl.sql.databases.target import Found, TableTarget, check_table
from elasticdl.sql.databases.url import Address
from elasticdl.sql.rows import Rows

__all__ = ["MySQLDatabase"]

_OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "charset": str,
    "connect_timeout": int,
    "read_timeout": int,
    "write_timeout": int,
    "ssl_ca": str,
    "ssl_cert": str,
    "ssl_key": str,
}
_OF_GO = {
    "allowCleartextPasswords", "allowNativePasswords", "collation", "loc", "maxAllowedPacket", "parseTime",
    "readTimeout", "timeout", "writeTimeout",
}  # fmt: skip
"""Options of the driver that SQLFlow used: they mean nothing to this one."""
_KINDS = {"BASE TABLE": "table", "VIEW": "a view", "SYSTEM VIEW": "a view"}


class MySQLDatabase:
    """See `base.Database`. Options of the address are PyMySQL's: `?ssl_ca=ca.pem&charset=utf8mb4`."""

    dialect = "mysql"

    def __init__(self, address: Address) -> None:
        import pymysql

        self.shown = address.shown
        self.changed: int | None = None
        self._streams = Streams()
        self._module: Any = pymysql
        self._arguments = _arguments(address)
        self._connection: Any = self.connect()

    def connect(self) -> Any:
        """Another connection to the same database."""
        from pymysql.converters import conversions
        from pymysql.cursors import SSCursor

        # Without converters for what comes: whole columns are converted at once, which is faster.
        encoders = {
            kind: encode for kind, encode in conversions.items() if not isinstance(kind, int)
        }
        try:
            return self._module.connect(
                **self._arguments, conv=encoders, cursorclass=SSCursor, autocommit=True
            )
        except self._module.Error as error:
            raise as_error(trouble(error), self.shown) from None

    def run(self, sql: str) -> Rows | None:
        self.changed = None
        with self.failures(sql):
            cursor = self._cursor()
            cursor.execute(sql)
            if cursor.description is None:
                self.changed = cursor.rowcount
                cursor.close()
                return None
        return self._rows(cursor, sql)

    def select(self, sql: str) -> Rows:
        rows = self.run(sql)
        if rows is None:
            raise InvalidValue(f"This gives no rows: {sql[:60]!r}. Give a SELECT.")
        return rows

    def tables(self) -> list[str]:
        rows = self.ask(
            "SELECT table_schema, table_name, table_schema = DATABASE() FROM information_schema.tables WHERE "
            "COALESCE(table_schema = DATABASE(), TRUE) AND table_schema "
            "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') "
            "AND table_name NOT LIKE '\\_\\_elasticdl\\_%%' ORDER BY 2"
        )
        return [name if near == "1" else f"{schema}.{name}" for schema, name, near in rows]

    def columns(self, table: str) -> list[str]:
        found = self.find([table]) or self.find(table.split("."))
        return list(self.schema(found).names) if found else []

    def write_table(self, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
        return put_table(BySwap(self, _home(name)), name, rows, replace=replace)

    def check_table(self, name: Sequence[str], *, replace: bool) -> None:
        check_table(BySwap(self, _home(name)), name, replace=replace)

    def target(self, select: str, table: Sequence[str], column: str, *, overwrite: bool) -> Target:
        swap = BySwap(self, _home(table))
        return TableTarget(swap, swap, select, table, column, overwrite)

    def close(self) -> None:
        with suppress(Exception):
            self._streams.drop()
            self._connection.close()

    # What a target needs.

    def find(self, parts: Sequence[str]) -> Found | None:
        if not 0 < len(parts) < 3:
            return None
        rows = self.ask(
            "SELECT table_schema, table_name, table_type, @@lower_case_table_names FROM information_schema.tables "
            "WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s",
            parts[0] if len(parts) == 2 else None,
            parts[-1],
        )
        for schema, name, kind, folds in rows:
            if folds != "0" or (name == parts[-1] and schema == [schema, *parts][-2]):
                return Found((schema, name), _KINDS.get(kind, f"a {kind.lower()}"))
        return self._temporary(parts)

    def _temporary(self, parts: Sequence[str]) -> Found | None:
        """A temporary table, which is in no list."""
        with suppress(self._module.Error), self._cursor() as cursor:
            cursor.execute(f"SHOW COLUMNS FROM {quoted(self.dialect, parts)}")
            return Found(tuple(parts), "a temporary table")
        return None

    def has_schema(self, outer: Sequence[str]) -> bool:
        ((folds,),) = self.ask("SELECT @@lower_case_table_names")
        known, wanted = self.schemas(), ".".join(outer)
        if folds != "0":
            known, wanted = [name.lower() for name in known], wanted.lower()
        return len(outer) == 1 and wanted in known

    def schemas(self) -> list[str]:
        rows = self.ask("SELECT schema_name FROM information_schema.schemata ORDER BY 1")
        return [name for (name,) in rows]

    def schema(self, found: Found) -> pa.Schema:
        with self.select(f"SELECT * FROM {quoted(self.dialect, found.parts)} LIMIT 0") as rows:
            return rows.schema

    def execute(self, sql: str) -> int | None:
        self.run(sql)
        return self.changed

    def append(self, parts: Sequence[str], batch: pa.RecordBatch) -> None:
        table = quoted(self.dialect, parts).replace("%", "%%")
        marks = ", ".join(["%s"] * batch.num_columns)
        rows = list(zip(*[written(column) for column in batch.columns], strict=True))
        with self.failures(), self._cursor() as cursor:
            if rows:
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def in_transaction(self) -> bool:
        from pymysql.constants.SERVER_STATUS import SERVER_STATUS_IN_TRANS

        self.ask("SELECT 1")
        return bool(self._connection.server_status & SERVER_STATUS_IN_TRANS)

    def ask(self, sql: str, *values: str | int | None) -> list[tuple[Any, ...]]:
        """The rows of a small query; its values are texts."""
        with self.failures(sql), self._cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())

    def number(self) -> int:
        """The server's number of the connection."""
        return int(self._connection.thread_id())

    def drop_rows(self) -> None:
        self._streams.drop()

    def _cursor(self) -> Any:
        """A free connection's; a new one's, if the last was lost or a query was stopped on it."""
        self._streams.make_room()
        if not self._connection.open:
            last, self._connection = self._connection, self.connect()
            with suppress(self._module.Error), self._connection.cursor() as cursor:
                cursor.execute(f"KILL {int(last.thread_id())}")
        return self._connection.cursor()

    def _rows(self, cursor: Any, sql: str) -> Rows:
        connection = self._connection
        # The driver's own packets: the description leaves signs and character sets out.
        schema = schema_of(cursor._result.fields)

        def batches() -> Iterator[pa.RecordBatch]:
            with self.failures(sql):
                while rows := cursor.fetchmany(BATCH_ROWS):
                    yield batch_of(rows, schema)

        def close() -> None:
            if not connection.open:
                _abandon(cursor)
            with suppress(self._module.Error):
                cursor.close()

        return self._streams.open(schema, batches(), close)

    @contextmanager
    def failures(self, sql: str = "") -> Iterator[None]:
        try:
            yield
        except ElasticDLError:
            raise
        except self._module.Error as error:
            columns = lambda: columns_read(sql, self.dialect, self.columns)  # noqa: E731
            raise as_error(trouble(error), self.shown, self.tables, columns) from None
        except pa.ArrowInvalid as error:
            raise InvalidValue(f"{self.shown} gave a value that cannot be read: {error}.") from None
        except Exception as error:
            if not is_of(error, "pymysql", "socket", "ssl"):
                raise
            self._connection._force_close()
            raise as_error(GONE, self.shown) from None


def _abandon(cursor: Any) -> None:
    """Keep the driver from reading to the end of a result whose connection is gone."""
    result = cursor._result
    if result is not None:
        result.unbuffered_active, result.connection = False, None
    cursor.connection = None


def _home(parts: Sequence[str]) -> str | None:
    return parts[0] if len(parts) == 2 else None


def _arguments(address: Address) -> dict[str, Any]:
    found: dict[str, Any] = {
        "host": address.host,
        "port": address.port or 3306,
        "user": address.user or None,
        "password": address.password,
        "database": address.database or None,
        "charset": "utf8mb4",
        "connect_timeout": 10,
    }
    for name, text in address.options.items():
        if name in _OF_GO:
            continue
        if name == "tls" and text.lower() in ("true", "false", "preferred", "skip-verify"):
            found |= {"ssl": {}} if text.lower() != "false" else {}
        elif name not in _OPTIONS:
            raise InvalidValue(
                f"{address.shown}: unknown option {name!r}. {nearest(name, _OPTIONS)}"
            )
        else:
            try:
                found[name] = _OPTIONS[name](text)
            except ValueError:
                raise InvalidValue(f"{address.shown}: {name} is a number, not {text!r}.") from None
    return found
