"""Arrow IPC files as a source: one shard a file, read by its record batches, a record is a dict by column.

Values are as with Parquet. With `table`, the columns of a feature plan, they are what the plan says: numbers with NaN
where they are missing, and so on.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elasticdl.data.chunks import cut
from elasticdl.data.files import File, FileSource, ShardReader, for_each
from elasticdl.data.readers.columns import check_columns, locate
from elasticdl.data.readers.parquet import array_spec, values_of
from elasticdl.data.readers.planned import Planned
from elasticdl.data.source import Chunk, Metadata, Structure
from elasticdl.errors import CorruptData, DataError, reason

__all__ = ["open_arrow"]

CHUNK_RECORDS = 4096


def open_arrow(
    files: Sequence[File],
    *,
    columns: Sequence[str] | None = None,
    table: Sequence[Mapping[str, Any]] | None = None,
    order_seed: int | None = None,
    short_names: bool = False,
) -> FileSource:
    """A source of Arrow IPC files.

    Args:
        columns: the columns to read. Default: all.
        table: the columns of a feature plan, which say how values are read.
        order_seed: takes the batches of a file in a random order, so that rows that were written together,
            such as those of one class, are not read together. A file of one order, seed and size has one order.
        short_names: calls shards by the names of the files alone. A lease is shuffled by its shard's name: for files
            in a directory that is another each time.
    """
    planned = Planned.of(table)
    chosen = check_columns(columns)
    readers = for_each(
        [file for file in files if file.size],
        lambda file: _Shard(file, chosen, planned, order_seed),
    )
    if not readers:
        raise DataError(f"{files[0].url} is empty. Give data that holds records.")
    first = readers[0]
    for reader in readers[1:]:
        if reader.types != first.types:
            raise DataError(
                f"{reader.file.url} and {first.file.url} differ in their columns: {reader.types} and "
                f"{first.types}. Write them with one schema."
            )
    shards: list[tuple[str, ShardReader]] = [
        (posixpath.basename(reader.file.path) if short_names else reader.file.url, reader)
        for reader in readers
    ]
    return FileSource(shards, first.structure, Metadata(column_names=tuple(first.structure)))


class _Shard:
    """One file. Each read opens it anew, so that several may go on at once."""

    sequential = False

    def __init__(
        self,
        file: File,
        names: Sequence[str] | None,
        table: Planned | None,
        order_seed: int | None,
    ) -> None:
        self.file = file
        self._table = table
        with self._open(look=True) as reader:
            schema = reader.schema
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        self._names = names or schema.names
        places = locate(self._names, schema.names, file.url) if table is None else []
        self.types = {schema.names[i]: schema.field(i).type for i in places}
        self._order = np.arange(len(sizes))
        if order_seed is not None:
            self._order = np.random.default_rng(order_seed).permutation(self._order)
        self._ends = np.cumsum(np.array(sizes, np.int64)[self._order])

    @property
    def num_records(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def structure(self) -> Mapping[str, Structure]:
        if self._table is not None:
            return self._table.structure
        return {name: array_spec(name, type_, self.file.url) for name, type_ in self.types.items()}

    def read(self, start: int, end: int) -> Iterator[Chunk]:
        """A few batches at a time, as one chunk."""
        with self._open() as reader:
            place = int(np.searchsorted(self._ends, start, side="right"))
            begin = int(self._ends[place - 1]) if place else 0
            while begin < end:
                stop = int(np.searchsorted(self._ends, begin + CHUNK_RECORDS, side="left")) + 1
                batches = [self._batch(reader, i) for i in self._order[place:stop]]
                chunk = self._arrays(batches, begin)
                yield cut(chunk, max(0, start - begin), end - begin)
                begin += sum(batch.num_rows for batch in batches)
                place = stop

    def _batch(self, reader: Any, number: int) -> Any:
        try:
            return reader.get_batch(int(number))
        except (pa.ArrowInvalid, OSError) as error:
            raise _corrupt(self.file, error) from error

    def _arrays(self, batches: Sequence[Any], row: int) -> Chunk:
        whole: Any = batches[0]
        if len(batches) > 1:
            (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        where = f"{self.file.url}, from record {row} on"
        if self._table is not None:
            return self._table.arrays(whole, where)
        return {name: values_of(whole.column(name), name, where) for name in self._names}

    def _open(self, *, look: bool = False) -> Any:
        """The file; for a mere look mapped into memory, where the sizes of batches cost no reading."""
        handle: Any
        if "file" not in np.atleast_1d(self.file.fs.protocol):
            handle = self.file.open()
        else:
            handle = pa.memory_map(self.file.path) if look else pa.OSFile(self.file.path, "rb")
        try:
            return pa.ipc.open_file(handle)
        except pa.ArrowInvalid as error:
            raise _corrupt(self.file, error) from error


def _corrupt(file: File, error: Exception) -> CorruptData:
    return CorruptData(
        f"{file.url} cannot be read: {reason(error)}. The file is damaged or no Arrow IPC file: copy or "
        "write it again, or name its reader_type."
    )
