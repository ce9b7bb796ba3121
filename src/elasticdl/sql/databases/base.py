"""What a database is to the rest: rows out, tables in, and its own SQL passed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Protocol

import pyarrow as pa

from elasticdl.sql.rows import Rows

__all__ = ["Database", "Target"]


class Target(Protocol):
    """Where predictions go: one transaction, from reading the rows to writing what was predicted for them.

    Leaving it by an exception leaves all tables as they were, and so does a kill at any moment.

    Attributes:
      hidden: the columns of `rows` that are not the user's, such as a row's id; they come first.
      replaced: a selected column that is left out of `rows`, since the prediction takes its name; else None.
    """

    hidden: tuple[str, ...]
    replaced: str | None

    @property
    def in_place(self) -> bool:
        """Whether a column of the table that is selected from is filled."""
        ...

    def rows(self) -> Rows:
        """The rows of the SELECT, with the hidden columns."""
        ...

    def write(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Write and commit: all columns of `rows` and then those that were predicted. Returns the number of rows."""
        ...

    def __enter__(self) -> Target: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Database(Protocol):
    """An open database. It is used from one thread at a time.

    Attributes:
      dialect: sqlglot's name for its SQL.
      shown: its address without secrets.
      changed: how many rows the last statement of `run` changed; None if that is not known.
    """

    dialect: str
    shown: str
    changed: int | None

    def run(self, sql: str) -> Rows | None:
        """Run one statement verbatim. Its rows, or None if it gives none."""
        ...

    def select(self, sql: str) -> Rows:
        """The rows of a SELECT, in batches of some 64,000; memory does not grow with their number."""
        ...

    def tables(self) -> list[str]:
        """The tables and views that can be named as they are."""
        ...

    def columns(self, table: str) -> list[str]:
        """The columns of a table; none for one that does not exist."""
        ...

    def write_table(self, name: Sequence[str], rows: Rows, *, replace: bool) -> int:
        """Write rows to a new table, of this very name, in one transaction. Returns their number.

        Raises:
          OutputExists: there is such a table, and `replace` is not set.
        """
        ...

    def check_table(self, name: Sequence[str], *, replace: bool) -> None:
        """Refuse what `write_table` would refuse, before there are rows."""
        ...

    def target(self, select: str, table: Sequence[str], column: str, *, overwrite: bool) -> Target:
        """Where the predictions for a SELECT's rows go: `table.column`, which are names to the letter.

        Raises:
          InvalidValue: they cannot go there.
          OutputExists: something would be overwritten, and `overwrite` is not set.
        """
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...
