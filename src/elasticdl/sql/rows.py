"""Rows that are still coming: a schema, and Arrow batches to be taken once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

__all__ = ["Rows"]


class Rows:
    """A result. Iterating gives its batches, once; `close` lets go of what they come from.

    >>> rows = Rows.of(pa.table({"x": [1, 2]}))
    >>> rows.to_table().num_rows
    2
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.schema = schema
        self._batches = iter(batches)
        self._close = close

    @classmethod
    def of(cls, table: pa.Table) -> Rows:
        return cls(table.schema, table.to_batches())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def to_table(self) -> pa.Table:
        with self:
            return pa.Table.from_batches(list(self), schema=self.schema)

    def close(self) -> None:
        self._close()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
