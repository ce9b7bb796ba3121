"""Parquet files as a source: one sequential shard a row group, a record is a dict by column.

    integers, floats, booleans     the same numpy type; a missing float is NaN
    strings, binary                bytes; a missing one is empty
    decimals                       float64
    dates                          int64: days since 1970 (date32) or milliseconds (date64)
    timestamps, times, durations   int64 in the column's unit (timestamps since 1970, UTC)
    dictionary-encoded             as its values
    fixed-size lists of numbers    a vector

A missing integer, boolean, date or list has no such value and is an error; so are columns of other
types, unless `columns` leaves them out. With `table`, the columns of a feature plan, values are what the plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elasticdl.data.chunks import MAX_BYTES, MAX_RECORDS
from elasticdl.data.cursor import CursorPool, SequentialShard
from elasticdl.data.files import File, FileSource, ShardReader, for_each
from elasticdl.data.readers.columns import check_columns, locate
from elasticdl.data.readers.planned import Planned
from elasticdl.data.source import BYTES, ArraySpec, Chunk, Metadata, Structure
from elasticdl.errors import CorruptData, DataError, reason

__all__ = ["array_spec", "look_into_parquet", "open_parquet", "values_of"]

_BUFFER_BYTES = 256 << 10
_Convert = Callable[[Any, str], Chunk]
"""A batch, and where it is, as a chunk."""


def open_parquet(
    files: Sequence[File],
    *,
    columns: Sequence[str] | None = None,
    table: Sequence[Mapping[str, Any]] | None = None,
) -> FileSource:
    """A source of Parquet files.

    Args:
        columns: the columns to read. Default: all.
        table: the columns of a feature plan, which say what is read and how.
    """
    if (planned := Planned.of(table)) is None:
        return _open(files, columns, look=False)
    footers = _footers(files)
    convert = planned.arrays
    shards = [
        (footer, planned.located(footer.schema, footer.file.url), convert) for footer in footers
    ]
    return _source(files, shards, planned.structure)


def look_into_parquet(files: Sequence[File], *, columns: Sequence[str] | None = None) -> FileSource:
    """The same for a look only: what cannot be a record's value is there as a Python object."""
    return _open(files, columns, look=True)


def _open(files: Sequence[File], columns: Sequence[str] | None, *, look: bool) -> FileSource:
    chosen = check_columns(columns)
    footers = _footers(files)
    names = chosen or tuple(footers[0].schema.names)
    types = _types(footers[0], names)
    for footer in footers[1:]:
        _check_same(footers[0], types, footer)
    url = footers[0].file.url
    structure = {n: BYTES if look else array_spec(n, type_, url) for n, type_ in types.items()}
    convert = partial(_by_name, names, _shown_values if look else values_of)
    return _source(files, [(footer, names, convert) for footer in footers], structure)


def _footers(files: Sequence[File]) -> list[_Footer]:
    footers = for_each([file for file in files if file.size], _footer)
    if not footers:
        raise DataError(f"{files[0].url} is empty. Give data that holds records.")
    return footers


def _source(
    files: Sequence[File],
    parts: Sequence[tuple[_Footer, Sequence[str], _Convert]],
    structure: Mapping[str, Structure],
) -> FileSource:
    """Of each file: its footer, the columns to read, and what makes a chunk of a batch of them."""
    pool = CursorPool()
    shards = [shard for part in parts for shard in _shards(*part, pool)]
    if not shards:
        raise DataError(f"There are no records in {files[0].url}. Give data that holds some.")
    return FileSource(shards, structure, Metadata(column_names=tuple(structure)))


@dataclass(frozen=True)
class _Footer:
    file: File
    schema: Any
    row_groups: Sequence[tuple[int, int]]
    """Of each row group: number of rows, bytes when decompressed."""


def _footer(file: File) -> _Footer:
    with file.open() as handle:
        try:
            parquet = pq.ParquetFile(handle)
        except pa.ArrowInvalid as e:
            raise _corrupt(file, "its footer cannot be read", e) from e
        with parquet:
            meta = parquet.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            sizes = [(group.num_rows, group.total_byte_size) for group in groups]
            return _Footer(file, parquet.schema_arrow, sizes)


def _types(footer: _Footer, names: Sequence[str]) -> dict[str, Any]:
    places = locate(names, footer.schema.names, footer.file.url)
    return {name: footer.schema.field(i).type for name, i in zip(names, places, strict=True)}


def _check_same(first: _Footer, types: dict[str, Any], footer: _Footer) -> None:
    for name, type_ in _types(footer, list(types)).items():
        if type_ != types[name]:
            raise DataError(
                f"Column {name!r} is {type_} in {footer.file.url} and {types[name]} in "
                f"{first.file.url}. Write them with one type."
            )


def _shards(
    footer: _Footer, names: Sequence[str], convert: _Convert, pool: CursorPool
) -> list[tuple[str, ShardReader]]:
    shards: list[tuple[str, ShardReader]] = []
    for group, (num_rows, num_bytes) in enumerate(footer.row_groups):
        key = footer.file.url if len(footer.row_groups) == 1 else f"{footer.file.url}#{group}"
        batch = max(1, min(MAX_RECORDS, num_rows * MAX_BYTES // max(1, num_bytes)))
        stream = partial(_stream, footer.file, group, names, batch, convert)
        shards.append((key, SequentialShard(key, num_rows, stream, pool)))
    return shards


def _stream(
    file: File, group: int, names: Sequence[str], batch_size: int, convert: _Convert
) -> Generator[Chunk, None, None]:
    """The chunks of a row group; without `pre_buffer` its pages are read as they are needed."""
    row = 0
    with file.open() as handle:
        try:
            with pq.ParquetFile(handle, pre_buffer=False, buffer_size=_BUFFER_BYTES) as parquet:
                batches = parquet.iter_batches(
                    batch_size, row_groups=[group], columns=list(names), use_threads=False
                )
                for batch in batches:
                    rows = f"rows {row} to {row + batch.num_rows - 1}"
                    yield convert(batch, f"{file.url}, row group {group}, {rows}")
                    row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as e:
            if "Expected all lists to be of size" in str(
                e
            ):  # pyarrow up to 25 on a list that is missing
                raise DataError(
                    f"{file.url}, row group {group}, after row {row}: a list of fixed size has missing values. "
                    "Fill them in, or leave these rows out, before training."
                ) from e
            raise _corrupt(file, f"row group {group} cannot be read after row {row}", e) from e


def _by_name(names: Sequence[str], values: Callable[..., Any], batch: Any, where: str) -> Chunk:
    return {name: values(batch.column(name), name, where) for name in names}


def _corrupt(file: File, what: str, error: Exception) -> CorruptData:
    return CorruptData(
        f"{file.url}: {what}: {reason(error)}. The file is damaged or no Parquet file: copy or write it "
        "again, or name its reader_type."
    )


def array_spec(name: str, type_: Any, url: str) -> ArraySpec:
    """The form of a column's values, as the module's table says."""
    if pa.types.is_fixed_size_list(type_) and _is_number(type_.value_type):
        return ArraySpec(np.dtype(type_.value_type.to_pandas_dtype()), (type_.list_size,))
    if pa.types.is_dictionary(type_):
        return array_spec(name, type_.value_type, url)
    if _is_bytes(type_):
        return BYTES
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        return ArraySpec(np.dtype(np.int64))
    if pa.types.is_decimal(type_):
        return ArraySpec(np.dtype(np.float64))
    if _is_number(type_):
        return ArraySpec(np.dtype(type_.to_pandas_dtype()))
    raise DataError(
        f"{url}: column {name!r} is of type {type_}, which cannot be a record's value. Leave it "
        "out with columns=[...], or write it as a number, a string or a fixed-size list of numbers."
    )


def values_of(column: Any, name: str, where: str) -> NDArray[Any]:
    """A column of a batch as numpy, in the form that the module's table says."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return values_of(column.dictionary_decode(), name, where)
    if _is_bytes(type_):
        kind = pa.large_binary() if "large" in str(type_) else pa.binary()
        return _numpy(pc.fill_null(column.cast(kind), b""))
    if pa.types.is_decimal(type_):
        return _numpy(column.cast(pa.float64()))
    if column.null_count and not pa.types.is_floating(type_):
        raise DataError(
            f"{where}: column {name!r} ({type_}) has {column.null_count} missing values. "
            "Fill them when the file is written, or leave the column out with columns=[...]."
        )
    if pa.types.is_fixed_size_list(type_):
        return values_of(column.flatten(), name, where).reshape(len(column), type_.list_size)
    if pa.types.is_temporal(type_):
        return _numpy(column.cast(_integer_of(type_)).cast(pa.int64()))
    return _numpy(column)


def _shown_values(column: Any, name: str, where: str) -> NDArray[Any]:
    try:
        array_spec(name, column.type, where)
        return values_of(column, name, where)
    except DataError:
        shown = np.empty(len(column), dtype=object)
        for i, value in enumerate(column.to_pylist()):  # as a whole, lists would make a matrix
            shown[i] = value
        return shown


def _numpy(column: Any) -> NDArray[Any]:
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def _integer_of(type_: Any) -> Any:
    return pa.int32() if type_.bit_width == 32 else pa.int64()


def _is_number(type_: Any) -> bool:
    t = pa.types
    return bool(t.is_integer(type_) or t.is_floating(type_) or t.is_boolean(type_))


def _is_bytes(type_: Any) -> bool:
    t = pa.types
    tests = (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary, t.is_fixed_size_binary)
    return any(test(type_) for test in tests) or str(type_) in ("string_view", "binary_view")
