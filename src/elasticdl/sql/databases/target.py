"""Where predictions go: what `PREDICT table.column` means for what is there already, and how it comes about.

The rows of the SELECT and the predictions are kept in two temporary tables of the database, or, where the rows
are a table's own, in that table and one of predictions. A last step joins them. So the user's values never
leave the database on their way into the result, and keep their types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Protocol
from uuid import uuid4

import pyarrow as pa

from elasticdl.errors import (
    ElasticDLError,
    InvalidValue,
    OutputExists,
    StatementError,
    UnknownName,
    nearest,
)
from elasticdl.sql.databases.column_types import fits, plain, plain_type
from elasticdl.sql.databases.names import folded, name_key, quote, quoted
from elasticdl.sql.databases.selection import read_selection
from elasticdl.sql.rows import Rows

__all__ = [
    "Case",
    "Finish",
    "Found",
    "Hands",
    "RowId",
    "TableTarget",
    "check_table",
    "temporary_name",
]

ROW = "__elasticdl_row"


@dataclass(frozen=True)
class Found:
    """Something that is there already.

    Attributes:
      parts: its whole name, from the outer part to the inner.
      kind: `table`, or what else it is, in words.
    """

    parts: tuple[str, ...]
    kind: str = "table"


@dataclass(frozen=True)
class RowId:
    """A part of what tells a row from all others of its table.

    Attributes:
      column: as SQL.
      read_as: a cast after it, to read it.
      match_as: a cast after what was read, to compare it again.
    """

    column: str
    read_as: str = ""
    match_as: str = ""


class Case(Enum):
    """The three meanings of `PREDICT table.column`."""

    NEW = "a new table"
    REPLACE = "a table in place of another"
    COLUMN = "a column of the table that is selected from"


class Hands(Protocol):
    """What a target needs of a database."""

    dialect: str
    shown: str

    def find(self, parts: Sequence[str]) -> Found | None: ...
    def has_schema(self, outer: Sequence[str]) -> bool: ...
    def schemas(self) -> list[str]: ...
    def schema(self, found: Found) -> pa.Schema: ...
    def select(self, sql: str) -> Rows: ...
    def execute(self, sql: str) -> int | None: ...
    def append(self, parts: Sequence[str], batch: pa.RecordBatch) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class Finish(Protocol):
    """How one database reads rows with their ids, and puts what was predicted in its place."""

    def unfillable(self, found: Found) -> str:
        """Why no column of a table can be filled; empty if it can."""
        ...

    def keep_rows(self, select: str, kept: str) -> None:
        """Keep the rows of a SELECT in a temporary table, numbered from 1 in the column `ROW`."""
        ...

    def row_ids(self, found: Found) -> Sequence[RowId]: ...

    def row_source(self) -> str | None:
        """What to read instead of the table itself, if it has no ids of its own. Asked after `row_ids`."""
        ...

    def keep_predictions(self, kept: str, fields: Sequence[pa.Field], num_ids: int) -> None:
        """Make the temporary table of predictions: row ids, then what was predicted."""
        ...

    def fill(self, found: Found, kept: str, fields: Sequence[pa.Field], new: Sequence[str]) -> int:
        """Put predictions beside the table's rows, in columns of which some are new. Returns how many found a row."""
        ...

    def create(
        self,
        parts: Sequence[str],
        columns: Sequence[str],
        rows: str,
        kept: str,
        predicted: Sequence[str],
    ) -> None:
        """Make the table of the kept rows and their predictions, in place of what is there."""
        ...


def temporary_name() -> str:
    return f"__elasticdl_{uuid4().hex[:16]}"


def check_table(hands: Hands, parts: Sequence[str], *, replace: bool) -> Found | None:
    """What is there where a table is to be written.

    Raises:
      OutputExists: there is such a table, and `replace` is not set.
      InvalidValue: there is something that is no table.
      UnknownName: there is no schema to write it to.
    """
    shown = ".".join(parts)
    quoted(hands.dialect, parts)  # refuses what can be no name
    found = hands.find(parts)
    if found is None:
        _check_schema(hands, parts)
    elif found.kind != "table":
        raise InvalidValue(f"{shown} is {found.kind}, which is not overwritten. Give another name.")
    elif not replace:
        raise OutputExists(
            f"The table {shown} exists already. Give another name, or allow it to be overwritten."
        )
    return found


def _check_schema(hands: Hands, parts: Sequence[str]) -> None:
    """Refuse a new table in a schema that is not there."""
    outer = parts[:-1]
    if outer and not hands.has_schema(outer):
        shown, known = ".".join(outer), hands.schemas()
        raise UnknownName(
            f"There is no schema {shown!r} in {hands.shown} to make the table {parts[-1]!r} in. {nearest(shown, known)}"
        )


class TableTarget:
    """A target in a database: see `base.Target`."""

    def __init__(
        self,
        hands: Hands,
        finish: Finish,
        select: str,
        table: Sequence[str],
        column: str,
        overwrite: bool,
    ) -> None:
        self._hands, self._finish, self._overwrite = hands, finish, overwrite
        quoted(hands.dialect, [*table, column])  # refuses what can be no name
        self._table, self._column = list(table), column
        self._selection = read_selection(select, hands.dialect)
        self._case, self._found = self._decide()
        self._rows_table, self._predictions = temporary_name(), temporary_name()
        self._given = pa.schema([])
        self._rows: Rows | None = None
        self._done = False
        self.hidden: tuple[str, ...] = ()
        self.replaced: str | None = None

    @property
    def in_place(self) -> bool:
        return self._case is Case.COLUMN

    def __enter__(self) -> TableTarget:
        self._hands.begin()
        try:
            self._case, self._found = self._decide()  # in the transaction, where it stays true
        except BaseException:
            self._hands.rollback()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._rows is not None:
            self._rows.close()
        if not self._done:
            self._hands.rollback()

    def rows(self) -> Rows:
        try:
            rows = (
                self._rows_of(self._found) if self._found and self.in_place else self._rows_kept()
            )
        except StatementError as error:
            raise self._refusal(error) from None
        column = self._key(self._column)
        taken = [name for name in rows.schema.names if self._key(name) == column]
        self.replaced = taken[0] if taken else None
        rows = _arranged(rows, self.hidden, {self.replaced, ROW})
        self._given, self._rows = rows.schema, rows
        return rows

    def _refusal(self, error: StatementError) -> ElasticDLError:
        """What is wrong with the SELECT as it was written: nobody knows the one that was made of it."""
        self._hands.rollback()
        try:
            self._hands.select(self._selection.sql).close()
        except ElasticDLError as own:
            return own
        words = str(error).partition("\n")[0].rstrip(".")
        return InvalidValue(
            f"The rows of the SELECT cannot be told apart: {words}. Make a table or a view of it first, and select "
            "from that."
        )

    def _rows_of(self, found: Found) -> Rows:
        """The table's own rows, each with its id."""
        dialect = self._hands.dialect
        ids = self._finish.row_ids(found)
        self.hidden = tuple(f"{ROW}_{number}" for number in range(len(ids)))
        source = self._finish.row_source()
        selection = self._selection
        if source is not None:
            selection = read_selection(selection.with_source(source), dialect)
        table = quote(dialect, selection.alias)
        expressions = [
            f"{table}.{part.column}{part.read_as} AS {quote(dialect, name)}"
            for part, name in zip(ids, self.hidden, strict=True)
        ]
        return self._hands.select(selection.with_columns(expressions))

    def _rows_kept(self) -> Rows:
        """The rows of any SELECT, kept and numbered."""
        self.hidden = (ROW,)
        self._finish.keep_rows(self._selection.sql, self._rows_table)
        return self._hands.select(f"SELECT * FROM {quote(self._hands.dialect, self._rows_table)}")

    def write(self, batches: Iterable[pa.RecordBatch]) -> int:
        fields: list[pa.Field] | None = None
        count = 0
        for batch in batches:
            num_hidden, num_given = len(self.hidden), len(self._given)
            if fields is None:
                fields = self._begin_predictions(list(batch.schema)[num_given:])
            columns = [*batch.columns[:num_hidden], *batch.columns[num_given:]]
            names = [*self.hidden, *(field.name for field in fields)]
            staged = pa.RecordBatch.from_arrays(columns, names=names)
            self._hands.append([self._predictions], plain(staged))
            count += batch.num_rows
        if fields is None:  # no rows: nobody said what a prediction is
            fields = self._begin_predictions([pa.field(self._column, pa.float64())])
        self._put(fields, count)
        self._hands.commit()
        self._done = True
        return count

    def _begin_predictions(self, predicted: Sequence[pa.Field]) -> list[pa.Field]:
        dialect = self._hands.dialect
        names = [self._column, *folded(dialect, [field.name for field in predicted[1:]])]
        fields = [
            pa.field(name, plain_type(field.type))
            for name, field in zip(names, predicted, strict=True)
        ]
        self._check(fields)
        ids = [pa.field(name, plain_type(self._given.field(name).type)) for name in self.hidden]
        self._finish.keep_predictions(self._predictions, [*ids, *fields], len(ids))
        return fields

    def _check(self, fields: Sequence[pa.Field]) -> None:
        """Refuse predictions whose names or types do not go with the columns that are there."""
        if self._found is None or self._case is not Case.COLUMN:
            given = {self._key(name) for name in self._given.names}
            if taken := [field.name for field in fields if self._key(field.name) in given]:
                raise InvalidValue(
                    f"The SELECT has a column {taken[0]!r} already, which is what a prediction is called. Leave it "
                    "out, or rename it with AS."
                )
            return
        there = self._columns(self._found)
        for field in fields:
            column = there.get(self._key(field.name))
            if column is not None and not self._overwrite:
                raise self._column_exists(field.name)
            if column is not None and not fits(field.type, column.type):
                raise InvalidValue(
                    f"{self._shown(field.name)} holds {column.type}, which cannot take predictions of type "
                    f"{field.type}. Give another column."
                )

    def _put(self, fields: Sequence[pa.Field], count: int) -> None:
        if self._found is None or self._case is not Case.COLUMN:
            columns = [name for name in self._given.names if name not in self.hidden]
            parts = self._found.parts if self._found else self._table
            names = [field.name for field in fields]
            self._finish.create(parts, columns, self._rows_table, self._predictions, names)
            return
        there = self._columns(self._found)
        new = [field.name for field in fields if self._key(field.name) not in there]
        filled = self._finish.fill(self._found, self._predictions, fields, new)
        if filled != count:
            raise InvalidValue(
                f"{count:,} predictions were made for {filled:,} rows of {self._shown()}: the SELECT gives a row more "
                "than once, or rows have gone meanwhile. Nothing was written; write to a new table."
            )

    def _decide(self) -> tuple[Case, Found | None]:
        found = self._hands.find(self._table)
        if found is None:
            _check_schema(self._hands, self._table)
            return Case.NEW, None
        if found.kind != "table":
            raise InvalidValue(
                f"{self._shown()} is {found.kind}: predictions go into a table. Give the name of a new one."
            )
        if self._is_read(found):
            self._check_own(found)
            return Case.COLUMN, found
        self._check_letters(found)
        if not self._overwrite:
            raise OutputExists(
                f"The table {self._shown()} exists already, and is not the one that is selected from. Give another "
                "name, or replace it: WITH predict.overwrite=true."
            )
        return Case.REPLACE, found

    def _check_letters(self, found: Found) -> None:
        """Tell of a selected table that is the target but for large and small letters: there is none such."""
        for parts in self._selection.tables:
            meant = parts[-1].lower() == found.parts[-1].lower() and parts[-1] != found.parts[-1]
            if meant and self._hands.find(parts) is None:
                raise UnknownName(
                    f"There is no table {parts[-1]!r} in {self._hands.shown}: large and small letters differ. Did you "
                    f"mean {found.parts[-1]!r}?"
                )

    def _is_read(self, found: Found) -> bool:
        selection = self._selection
        if (
            not selection.tables
        ):  # none, or nothing was understood: then its name in the text is enough
            return bool(selection.fault) and found.parts[-1].lower() in selection.sql.lower()
        return any(self._hands.find(parts) == found for parts in selection.tables)

    def _check_own(self, found: Found) -> None:
        """Refuse to fill a column where the rows are not the table's, or more than the column would change."""
        source = self._selection.source
        fault = self._selection.fault
        if not fault and (source is None or self._hands.find(source) != found):
            fault = "its rows are another table's"
        if fault:
            raise InvalidValue(
                f"The SELECT reads {self._shown()}, but its rows cannot be told to be rows of it: {fault}. Write to a "
                "new table."
            )
        if reason := self._finish.unfillable(found):
            raise InvalidValue(
                f"No column of {self._shown()} can be filled: {reason}. Write to a new table."
            )
        if not self._overwrite and self._key(self._column) in self._columns(found):
            raise self._column_exists(self._column)

    def _column_exists(self, column: str) -> OutputExists:
        return OutputExists(
            f"The column {self._shown(column)} exists already. Give another name, or fill it anew: "
            "WITH predict.overwrite=true."
        )

    def _columns(self, found: Found) -> dict[str, pa.Field]:
        return {self._key(field.name): field for field in self._hands.schema(found)}

    def _key(self, name: str) -> str:
        return name_key(self._hands.dialect, name)

    def _shown(self, column: str | None = None) -> str:
        return ".".join([*self._table, *([column] if column else [])])


def _arranged(rows: Rows, hidden: Sequence[str], left_out: Collection[str | None]) -> Rows:
    """Rows with the hidden columns first, and without those that are left out."""
    names = rows.schema.names
    first = [names.index(name) for name in hidden]
    order = first + [
        place for place, name in enumerate(names) if place not in first and name not in left_out
    ]
    schema = pa.schema([rows.schema.field(place) for place in order])
    batches = (
        pa.RecordBatch.from_arrays([batch.column(place) for place in order], schema=schema)
        for batch in rows
    )
    return Rows(schema, batches, rows.close)
