"""The `table` parameter, shared by the readers of formats that have columns: a feature plan's columns.

With it a record is what the plan says, whatever the file calls its types: numbers with NaN where they are missing,
dates and times in seconds since 1970, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elasticdl.data.source import BYTES, ArraySpec, Chunk, Structure
from elasticdl.errors import DataError
from elasticdl.tabular.arrays import check_columns, to_arrays
from elasticdl.tabular.plan import Column
from elasticdl.tabular.types import find

__all__ = ["Planned"]


class Planned:
    """The columns of a plan, as a reader of files uses them."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)

    @classmethod
    def of(cls, table: Sequence[Mapping[str, Any]] | None) -> Planned | None:
        return None if table is None else cls([Column(**column) for column in table])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._columns)

    @property
    def structure(self) -> Mapping[str, Structure]:
        return {column.name: _spec(column) for column in self._columns}

    def located(self, schema: pa.Schema, url: str) -> tuple[str, ...]:
        """What the columns are called in a file.

        Raises:
            DataError: the file lacks one, or has it in a type whose values never fit.
        """
        try:
            check_columns(schema, self._columns)
        except DataError as error:
            raise DataError(f"{url}: {error}") from error
        found = (find(name, schema.names) for name in self.names)
        return tuple(dict.fromkeys(str(name) for name in found))

    def arrays(self, batch: pa.RecordBatch, where: str) -> Chunk:
        try:
            chunk: Chunk = to_arrays(batch, self._columns)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        return chunk


def _spec(column: Column) -> ArraySpec:
    return BYTES if column.dtype == "string" else ArraySpec(np.dtype(column.dtype))
