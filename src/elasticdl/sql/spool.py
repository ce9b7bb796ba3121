"""Rows of a SELECT, kept in local files for as long as a statement runs.

A training reads its rows many times and in another order; a database gives them once. So they are read once, as fast as
they come, and from then on it does not matter what becomes of the table or the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from elasticdl.sql.rows import Rows
from elasticdl.storage import place, storage_errors

__all__ = ["BLOCK", "Spool", "read_spool", "write_rows", "write_split"]

BLOCK = 512
"""Rows that stay together when a training shuffles; see the Arrow reader."""
LARGE_BLOCK = 4096
FEW = 20
"""Rows too few to set some aside."""


class Spool:
    """A file of rows that grows."""

    def __init__(self, path: Path, schema: pa.Schema, block: int) -> None:
        self.path = path
        self.num_rows = 0
        self._block = block
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self.num_rows += batch.num_rows
        for start in range(0, batch.num_rows, self._block):
            self._writer.write_batch(batch.slice(start, self._block))

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._file, self._writer:
            pass


def write_rows(
    rows: Rows,
    path: Path,
    each: Callable[[pa.RecordBatch], None] = lambda batch: None,
    *,
    block: int = LARGE_BLOCK,
) -> Spool:
    """All rows in one file, in their order. `each` sees every batch."""
    with storage_errors(place(path)), rows, Spool(path, plain_schema(rows.schema), block) as spool:
        for batch in rows:
            batch = plain(batch)
            each(batch)
            spool.write(batch)
    return spool


def write_split(
    rows: Rows,
    training: Path,
    validation: Path,
    *,
    fraction: float,
    seed: int,
    each: Callable[[pa.RecordBatch], None],
) -> tuple[Spool, Spool]:
    """Rows in two files: by chance, which the seed decides, a fraction for validation. `each` sees all."""
    rng = np.random.default_rng(seed)
    schema = plain_schema(rows.schema)
    with ExitStack() as stack:
        stack.enter_context(storage_errors(place(training)))
        stack.enter_context(rows)
        kept, aside = (
            stack.enter_context(Spool(path, schema, BLOCK)) for path in (training, validation)
        )
        for batch in rows:
            batch = plain(batch)
            each(batch)
            chosen = pa.array(rng.random(batch.num_rows) < fraction)
            aside.write(batch.filter(chosen))
            kept.write(batch.filter(pa.compute.invert(chosen)))
    if 0 < kept.num_rows + aside.num_rows < FEW or not kept.num_rows:
        return _joined(kept, aside, schema)
    return kept, aside


def _joined(kept: Spool, aside: Spool, schema: pa.Schema) -> tuple[Spool, Spool]:
    """Too few rows to set some aside: all are for training."""
    batches = [*read_spool(kept.path), *read_spool(aside.path)]
    with Spool(kept.path, schema, BLOCK) as whole, Spool(aside.path, schema, BLOCK) as none:
        for batch in batches:
            whole.write(batch)
    return whole, none


def read_spool(path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a file, in their order."""
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Without dictionaries, of which an Arrow file has only one a column."""
    return pa.schema([pa.field(one.name, _plain_type(one.type)) for one in schema])


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = plain_schema(batch.schema)
    if schema.equals(batch.schema):
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_type(type_: Any) -> Any:
    return type_.value_type if pa.types.is_dictionary(type_) else type_
