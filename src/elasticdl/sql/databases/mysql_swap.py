"""Putting predictions in their place in MySQL and MariaDB, where no transaction holds a new table or column.

All is prepared in temporary tables and in a table of its own. One RENAME, which is atomic, then puts that table in the
place of the old one. A kill at any moment leaves the old table or the whole new one; what it leaves of the prepared
tables is removed by the next write to the same schema.

Limits. The table is copied, so that it needs space for a second copy of itself for a while, and writers wait while it
is copied; readers do not. Tables with triggers or foreign keys are refused, since they would not come along. A table
without a primary key, or with a key of another type than numbers and texts, must not be changed by others between the
reading and the writing: if it was, an error says so and nothing is written.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elasticdl.errors import ElasticDLError, InvalidValue, RunError
from elasticdl.sql.databases.column_types import plain, plain_type, sql_type
from elasticdl.sql.databases.names import quote, quoted
from elasticdl.sql.databases.target import ROW, Found, RowId, check_table, temporary_name
from elasticdl.sql.rows import Rows

if TYPE_CHECKING:
    from elasticdl.sql.databases.mysql_database import MySQLDatabase

__all__ = ["BySwap", "put_table"]

_KEY_TYPES = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "char", "varchar")
_TOO_STRICT = {"NO_ZERO_DATE", "NO_ZERO_IN_DATE", "TRADITIONAL"}
"""Modes in which rows that are there could not be copied as they are."""


class BySwap:
    """A `target.Hands` and a `target.Finish`, over the database's own.

    Args:
      home: the schema that is written to; None for that of the connection.
    """

    def __init__(self, database: MySQLDatabase, home: str | None) -> None:
        self._database, self._home = database, home
        self.dialect, self.shown = database.dialect, database.shown
        self.find, self.schema, self.select = database.find, database.schema, database.select
        self.execute, self.append = database.execute, database.append
        self.has_schema, self.schemas = database.has_schema, database.schemas
        self._name = temporary_name()
        self._settings: list[tuple[str, str | int]] = []
        self._temporary: list[str] = []
        self._prepared = self._rename = ""
        self._holder: Any = None
        self._key_of: Found | None = None
        self._ids: list[RowId] = []
        self._source: str | None = None
        self._checksum: Any = None

    def begin(self) -> None:
        database = self._database
        if database.in_transaction():
            raise InvalidValue("A transaction is open: end it with COMMIT or ROLLBACK first.")
        ((schema, mode, wait),) = database.ask("SELECT DATABASE(), @@sql_mode, @@lock_wait_timeout")
        if schema is None and self._home is None:
            raise InvalidValue("Name the database: in the address, or as database.table.")
        if schema is None:
            self.execute(
                f"USE {quote(self.dialect, self._home or '')}"
            )  # temporary tables have to be somewhere
        self._home = self._home or schema
        self._settings = [("sql_mode", mode), ("lock_wait_timeout", int(wait))]
        kept = [word for word in mode.split(",") if word and word not in _TOO_STRICT]
        database.ask("SET SESSION sql_mode = %s", ",".join({*kept, "NO_AUTO_VALUE_ON_ZERO"}))
        self.execute("SET SESSION lock_wait_timeout = 60")
        database.ask("SELECT GET_LOCK(%s, 0)", self._name)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what a process that was killed had prepared: nobody holds its lock any more."""
        rows = self._database.ask(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND "
            "table_name LIKE '\\_\\_elasticdl\\_%%' AND IS_FREE_LOCK(LEFT(table_name, %s))",
            self._home,
            len(self._name),
        )
        for (name,) in rows:
            self.execute(f"DROP TABLE IF EXISTS {quoted(self.dialect, [self._home or '', name])}")

    def commit(self) -> None:
        if self._holder is not None:
            self._rename_under_lock()
        else:
            self.execute(self._rename)
        self._prepared = ""
        with suppress(
            ElasticDLError
        ):  # it is done: what cannot be removed now is removed next time
            self._clean()

    def rollback(self) -> None:
        with suppress(ElasticDLError):
            self._database.drop_rows()
            self._clean()

    def unfillable(self, found: Found) -> str:
        triggers = self._database.ask(
            "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = %s "
            "AND event_object_table = %s",
            *found.parts,
        )
        if triggers:
            return f"it has the trigger {triggers[0][0]!r}, which would be lost"
        keys = self._database.ask(
            "SELECT constraint_name FROM information_schema.key_column_usage "
            "WHERE referenced_table_name IS NOT NULL AND (table_schema = %s AND table_name = %s "
            "OR referenced_table_schema = %s AND referenced_table_name = %s)",
            *found.parts,
            *found.parts,
        )
        return f"it has the foreign key {keys[0][0]!r}, which would be lost" if keys else ""

    def row_source(self) -> str | None:
        return self._source

    def row_ids(self, found: Found) -> Sequence[RowId]:
        if names := self._key(found):
            self._key_of = found
            self._ids = [RowId(quote(self.dialect, name)) for name in names]
            return self._ids
        self._checksum = self._checksum_of(found)
        self._source = quote(self.dialect, temporary_name())
        self._ids = [RowId(quote(self.dialect, ROW))]
        self._keep(self._source, f"SELECT * FROM {quoted(self.dialect, found.parts)}")
        if self._checksum_of(found) != self._checksum:
            raise self._changed(found)
        return self._ids

    def keep_rows(self, select: str, kept: str) -> None:
        self._keep(quote(self.dialect, kept), select)

    def _keep(self, name: str, select: str) -> None:
        self._temporary.append(name)
        row = f"{quote(self.dialect, ROW)} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
        self.execute(f"CREATE TEMPORARY TABLE {name} ({row}) AS\n{select}")

    def keep_predictions(self, kept: str, fields: Sequence[pa.Field], num_ids: int) -> None:
        name = quote(self.dialect, kept)
        self._temporary.append(name)
        rows = [quote(self.dialect, field.name) for field in fields[:num_ids]]
        if self._key_of is None:
            self.execute(f"CREATE TEMPORARY TABLE {name} ({rows[0]} BIGINT NOT NULL)")
        else:  # of the very types of the key
            keys = ", ".join(
                f"{part.column} AS {row}" for part, row in zip(self._ids, rows, strict=True)
            )
            table = quoted(self.dialect, self._key_of.parts)
            self.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT {keys} FROM {table} LIMIT 0")
        added = [f"ADD COLUMN {_declared(field)}" for field in fields[num_ids:]]
        self.execute(f"ALTER TABLE {name} {', '.join(added)}, ADD PRIMARY KEY ({', '.join(rows)})")

    def fill(self, found: Found, kept: str, fields: Sequence[pa.Field], new: Sequence[str]) -> int:
        table, made = quoted(self.dialect, found.parts), quote(self.dialect, kept)
        shadow = self._prepare(found.parts[0])
        self.execute(f"CREATE TABLE {shadow} LIKE {table}")
        if added := [f"ADD COLUMN {_declared(field)}" for field in fields if field.name in new]:
            self.execute(f"ALTER TABLE {shadow} {', '.join(added)}")
        ((number,),) = self._database.ask(
            "SELECT auto_increment FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            *found.parts,
        )
        if number:
            self.execute(f"ALTER TABLE {shadow} AUTO_INCREMENT = {int(number)}")
        columns, values = self._filled_columns(found, made, fields)
        source = self._source or table
        matches = " AND ".join(
            f"{source}.{part.column} = {made}.{quote(self.dialect, f'{ROW}_{number}')}"
            for number, part in enumerate(self._ids)
        )
        self._lock(table)
        if self._checksum is not None and self._checksum_of(found) != self._checksum:
            raise self._changed(found)
        self.execute(
            f"INSERT INTO {shadow} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {source} "
            f"LEFT JOIN {made} ON {matches}"
        )
        ((count,),) = self._database.ask(
            f"SELECT COUNT(*) FROM {source} JOIN {made} ON {matches}".replace("%", "%%")
        )
        self._rename = f"RENAME TABLE {table} TO {self._old(found.parts[0])}, {shadow} TO {table}"
        return int(count)

    def _filled_columns(
        self, found: Found, made: str, fields: Sequence[pa.Field]
    ) -> tuple[list[str], list[str]]:
        """The columns to copy, and from where: those that the server computes by itself are left out."""
        rows = self._database.ask(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
            "AND COALESCE(generation_expression, '') = ''",
            *found.parts,
        )
        source = self._source or quoted(self.dialect, found.parts)
        values = {name.lower(): f"{source}.{quote(self.dialect, name)}" for (name,) in rows}
        columns = {name.lower(): quote(self.dialect, name) for (name,) in rows}
        row = f"{made}.{quote(self.dialect, f'{ROW}_0')}"
        for field in fields:
            name = quote(self.dialect, field.name)
            before = values.get(field.name.lower(), "NULL")
            values[field.name.lower()] = f"IF({row} IS NULL, {before}, {made}.{name})"
            columns[field.name.lower()] = name
        return list(columns.values()), list(values.values())

    def create(
        self,
        parts: Sequence[str],
        columns: Sequence[str],
        rows: str,
        kept: str,
        predicted: Sequence[str],
    ) -> None:
        row = quote(self.dialect, ROW)
        names = [f"kept.{quote(self.dialect, name)}" for name in columns]
        names += [f"made.{quote(self.dialect, name)}" for name in predicted]
        made = quote(self.dialect, kept)
        self.place(
            parts,
            f"AS SELECT {', '.join(names)} FROM {quote(self.dialect, rows)} AS kept JOIN {made} AS made "
            f"ON kept.{row} = made.{row} ORDER BY kept.{row}",
        )

    def place(self, parts: Sequence[str], definition: str) -> list[str]:
        """Prepare a table, which `commit` puts in the place of what is there. Returns its name till then."""
        found = self.find(parts)
        if found is not None and (reason := self.unfillable(found)):
            raise InvalidValue(
                f"{'.'.join(parts)} cannot be replaced: {reason}. Give another name."
            )
        whole = found.parts if found else [self._home or "", *parts][-2:]
        table, shadow = quoted(self.dialect, whole), self._prepare(whole[0])
        self.execute(f"CREATE TABLE {shadow} {definition}")
        away = f"{table} TO {self._old(whole[0])}, " if found else ""
        self._rename = f"RENAME TABLE {away}{shadow} TO {table}"
        return [whole[0], self._name]

    def _prepare(self, schema: str) -> str:
        self._home = schema
        self._prepared = quoted(self.dialect, [schema, self._name])
        return self._prepared

    def _old(self, schema: str) -> str:
        return quoted(self.dialect, [schema, f"{self._name}_old"])

    def _lock(self, table: str) -> None:
        """Keep others from writing to a table, by another connection: whoever holds such a lock may not rename."""
        self._holder = self._database.connect()
        with self._database.failures():
            _run(self._holder, "SET SESSION lock_wait_timeout = 60")
            _run(self._holder, f"LOCK TABLES {table} READ")

    def _rename_under_lock(self) -> None:
        """Rename while nobody can write: it waits for the lock, and then comes before all who wait to write.

        The other names of the renaming are known to nobody else, so that what it waits for is the table itself.
        """
        with self._database.failures():  # a lock that was lost meanwhile kept nobody from writing
            _run(self._holder, "SELECT 1")
        failed: list[Exception] = []
        thread = threading.Thread(target=self._try_rename, args=(failed,), daemon=True)
        thread.start()
        try:
            with self._database.failures():
                while thread.is_alive() and not self._waits():
                    thread.join(0.01)
        except BaseException:
            with suppress(Exception), closing(self._database.connect()) as other:
                _run(other, f"KILL QUERY {self._database.number()}")
            thread.join()
            raise
        self._unlock()
        thread.join()
        if failed:
            raise failed[0]

    def _try_rename(self, failed: list[Exception]) -> None:
        try:
            self.execute(self._rename)
        except Exception as error:
            failed.append(error)

    def _waits(self) -> bool:
        own = (
            f"SELECT state FROM information_schema.processlist WHERE id = {self._database.number()}"
        )
        return any("table metadata lock" in (state or "") for (state,) in _run(self._holder, own))

    def _unlock(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            with suppress(Exception):
                holder.close()  # which unlocks

    def _clean(self) -> None:
        self._unlock()
        for name in [
            self._prepared,
            self._old(self._home or "") if self._rename and not self._prepared else "",
        ]:
            if name:
                self.execute(f"DROP TABLE IF EXISTS {name}")
        for name in self._temporary:
            self.execute(f"DROP TEMPORARY TABLE IF EXISTS {name}")
        for setting, value in self._settings:
            self._database.ask(f"SET SESSION {setting} = %s", value)
        self._database.ask("SELECT RELEASE_LOCK(%s)", self._name)

    def _key(self, found: Found) -> list[str]:
        """The columns of a key by which rows can be told apart, after they have been to Python and back."""
        rows = self._database.ask(
            "SELECT s.index_name, s.column_name, s.sub_part IS NULL AND c.is_nullable = 'NO' AND "
            f"c.data_type IN ({', '.join(['%s'] * len(_KEY_TYPES))}) FROM information_schema.statistics s "
            "JOIN information_schema.columns c ON c.table_schema = s.table_schema AND c.table_name = s.table_name "
            "AND c.column_name = s.column_name WHERE s.non_unique = 0 AND s.table_schema = %s AND s.table_name = %s "
            "ORDER BY s.index_name <> 'PRIMARY', s.index_name, s.seq_in_index",
            *_KEY_TYPES,
            *found.parts,
        )
        indexes: dict[str, list[tuple[str, bool]]] = {}
        for index, column, good in rows:
            indexes.setdefault(index, []).append((column, good == "1"))
        for columns in indexes.values():
            if all(good for _, good in columns):
                return [column for column, _ in columns]
        return []

    def _checksum_of(self, found: Found) -> Any:
        ((_, checksum),) = self._database.ask(
            f"CHECKSUM TABLE {quoted(self.dialect, found.parts)}".replace("%", "%%")
        )
        return checksum

    def _changed(self, found: Found) -> RunError:
        return RunError(
            f"{'.'.join(found.parts)} was changed by somebody else meanwhile, and has no primary key to tell its rows "
            "apart. Nothing was written: run it again, or give the table a primary key."
        )


def _run(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


def _declared(field: pa.Field) -> str:
    return f"{quote('mysql', field.name)} {sql_type('mysql', field.type)}"


def put_table(swap: BySwap, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
    """Write rows to a new table: `write_table` of a database."""
    swap.begin()
    count = 0
    try:
        with rows:
            check_table(swap, name, replace=replace)
            columns = ", ".join(
                _declared(pa.field(f.name, plain_type(f.type))) for f in rows.schema
            )
            shadow = swap.place(name, f"({columns})")
            for batch in rows:
                swap.append(shadow, plain(batch))
                count += batch.num_rows
        swap.commit()
    except BaseException:
        swap.rollback()
        raise
    return count
