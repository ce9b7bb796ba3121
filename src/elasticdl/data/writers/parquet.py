"""Parquet files: a typed column an output; arrays are (fixed-size) lists, bytes are text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elasticdl.data.source import ArraySpec
from elasticdl.data.writers.formats import Columns, Schema, Writer
from elasticdl.data.writers.text import text_of

__all__ = ["join_parquet", "parquet_writer"]

GROUP_BYTES = 16 << 20
"""Of a row group: it depends on the rows alone, so that the same rows make the same bytes."""


def parquet_writer(file: IO[bytes], schema: Schema) -> Writer:
    return _ParquetWriter(file, schema)


def join_parquet(parts: Iterable[IO[bytes]], file: IO[bytes]) -> None:
    """Row group by row group."""
    writer: Any = None
    for part in parts:
        with pq.ParquetFile(part) as parquet:
            writer = writer or pq.ParquetWriter(file, parquet.schema_arrow)
            for group in range(parquet.num_row_groups):
                writer.write_table(parquet.read_row_group(group))
    if writer is not None:
        writer.close()


class _ParquetWriter:
    def __init__(self, file: IO[bytes], schema: Schema) -> None:
        self._specs = schema
        fields = [pa.field(name, _type(spec)) for name, spec in schema.items()]
        self._schema: Any = pa.schema(fields)
        self._writer: Any = pq.ParquetWriter(file, self._schema)
        self._group_rows = max(1, GROUP_BYTES // sum(map(_num_bytes, schema.values())))
        self._waiting: list[Any] = []
        self._num_waiting = 0

    def write(self, columns: Columns) -> None:
        arrays = [_array(columns[name], spec) for name, spec in self._specs.items()]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._waiting.append(table)
        self._num_waiting += table.num_rows
        while self._num_waiting >= self._group_rows:
            self._write_group()

    def close(self) -> None:
        if self._num_waiting:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        waiting = pa.concat_tables(self._waiting)
        group = waiting.slice(0, self._group_rows).combine_chunks()
        rest = waiting.slice(self._group_rows)
        self._writer.write_table(group, row_group_size=self._group_rows)
        self._waiting, self._num_waiting = [rest], rest.num_rows


def _num_bytes(spec: ArraySpec) -> int:
    """About how large a value is; what varies counts as 64."""
    size = 64 if spec.dtype == object else spec.dtype.itemsize
    return size * math.prod(64 if n is None else max(1, n) for n in spec.shape)


def _type(spec: ArraySpec) -> Any:
    type_: Any = pa.string() if spec.dtype == object else pa.from_numpy_dtype(spec.dtype)
    fixed = None not in spec.shape
    for size in reversed(spec.shape):
        type_ = pa.list_(type_, size) if fixed and size is not None else pa.list_(type_)
    return type_


def _array(values: Any, spec: ArraySpec) -> Any:
    if isinstance(values, list):
        return pa.array([_plain(row) for row in values], _type(spec))
    flat = values.ravel()
    array = text_of(flat) if spec.dtype == object else pa.array(np.ascontiguousarray(flat))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, int(size))
    return array


def _plain(row: Any) -> Any:
    row = row.tolist() if isinstance(row, np.ndarray) else row
    if isinstance(row, list):
        return [_plain(item) for item in row]
    return row.decode(errors="backslashreplace") if isinstance(row, bytes) else row
