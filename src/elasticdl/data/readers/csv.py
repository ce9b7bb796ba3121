"""CSV and TSV files as a source: one shard a file, a record is the strings of the named columns.

The first row is the header; columns are found in it by name, whatever their order in the file.
Values are bytes as they stand in the file, quotes undone: nothing is converted, an empty field is
an empty string. They need not be UTF-8, only the names in the header are shown as if they were.
Blank lines are no records. With `table`, the columns of a feature plan, a record is a dict by column, and values are
what the plan says; an empty field is a missing one.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as _compute
import pyarrow.csv

from elasticdl.data.blocks import Block, IndexedShard
from elasticdl.data.cursor import CursorPool, SequentialShard
from elasticdl.data.files import File, FileSource, ShardReader, for_each
from elasticdl.data.gzipped import is_gzipped, open_stream
from elasticdl.data.readers.columns import check_columns, locate
from elasticdl.data.readers.csv_scan import scan
from elasticdl.data.readers.planned import Planned
from elasticdl.data.source import ArraySpec, Chunk, Metadata, Structure
from elasticdl.errors import DataError, InvalidValue, reason

__all__ = ["open_csv"]

pc: Any = _compute


def open_csv(
    files: Sequence[File],
    *,
    columns: Sequence[str] | None = None,
    sep: str | None = None,
    table: Sequence[Mapping[str, Any]] | None = None,
) -> FileSource:
    """A source of CSV files.

    Args:
        columns: the columns that make a record, in this order. Default: all of the file.
        sep: what stands between fields. Default: a comma, or a tab in .tsv files.
        table: the columns of a feature plan, which say what is read and how.
    """
    planned = Planned.of(table)
    chosen = check_columns(columns) if planned is None else planned.names
    layouts = for_each(files, lambda file: _header(file, _separator(file, sep)))
    names = chosen or next((layout.header for layout in layouts if layout.header), ())
    _check_headers(layouts, chosen)
    if chosen is None:
        _check_same(layouts, names)
    pool = CursorPool()
    tables = [_Table(layout, names, planned) for layout in layouts if layout.header]
    by_url = {table.layout.file.url: table for table in tables}
    readers = for_each([table.layout.file for table in tables], lambda f: by_url[f.url].shard(pool))
    shards = list(zip(by_url, readers, strict=True))
    if not shards:
        raise DataError(f"{files[0].url} is empty. Give data that holds records.")
    structure: Structure = ArraySpec(np.dtype(object), (len(names),))
    if planned is not None:
        structure = planned.structure
    return FileSource(shards, structure, Metadata(column_names=tuple(names)))


@dataclass(frozen=True)
class _Layout:
    """A file, its separator and its header (empty if the file is)."""

    file: File
    sep: str
    header: tuple[str, ...]


class _Table:
    """One file with the columns that are wanted of it."""

    def __init__(self, layout: _Layout, names: Sequence[str], planned: Planned | None) -> None:
        self.layout = layout
        self._planned = planned
        width = len(layout.header)
        # By position, so that odd or repeated names in the file do not matter.
        every = [str(i) for i in range(width)]
        if planned is not None:
            schema = pa.schema([(name, pa.string()) for name in layout.header])
            names = planned.located(schema, layout.file.url)
        self._wanted = names
        wanted = [str(i) for i in locate(names, layout.header, layout.file.url)]
        self._names = every
        self._convert = pyarrow.csv.ConvertOptions(
            check_utf8=False,
            column_types={name: pa.binary() for name in wanted},
            strings_can_be_null=False,
            null_values=[],
            include_columns=wanted,
        )

    def shard(self, pool: CursorPool) -> ShardReader:
        file = self.layout.file
        with open_stream(file) as stream:
            if not is_gzipped(file):
                return IndexedShard(file, self._rows(stream), self._decode)
            num_records = sum(block.num_records for block in self._rows(stream))
        return SequentialShard(file.url, num_records, self._stream, pool)

    def _rows(self, stream: IO[bytes]) -> Iterator[Block]:
        """The blocks after the header, numbered from the first record."""
        blocks = scan(stream, self.layout.sep.encode(), self.layout.file.url)
        next(blocks)
        return (replace(block, first=block.first - 1) for block in blocks)

    def _stream(self) -> Generator[Chunk, None, None]:
        with open_stream(self.layout.file) as stream:
            for block in self._rows(stream):
                yield self._decode(block)

    def _decode(self, block: Block) -> Chunk:
        try:
            table = self._parse(block.data)
        except pa.ArrowInvalid as e:
            raise self._bad_row(block, e) from e
        if table.num_rows != block.num_records:
            raise DataError(f"{self.layout.file.url} changed while it was read. Start again.")
        if self._planned is not None:
            return self._by_plan(table, block, self._planned)
        values = np.empty((table.num_rows, table.num_columns), dtype=object)
        for i, column in enumerate(table.columns):
            values[:, i] = column.to_numpy(zero_copy_only=False)
        return values

    def _by_plan(self, table: Any, block: Block, planned: Planned) -> Chunk:
        where = f"{self.layout.file.url}, from row {block.first + 2} on"
        try:
            texts = [column.combine_chunks().cast(pa.string()) for column in table.columns]
        except pa.ArrowInvalid as e:
            raise DataError(f"{where}: there is text that is not UTF-8. Save it as UTF-8.") from e
        nothing: Any = pa.scalar(None, pa.string())
        values = [pc.if_else(pc.equal(one, ""), nothing, one) for one in texts]
        return planned.arrays(pa.RecordBatch.from_arrays(values, list(self._wanted)), where)

    def _parse(self, data: bytes, on_bad_row: Callable[[Any], str] | None = None) -> Any:
        return pyarrow.csv.read_csv(
            cast(IO[bytes], pa.BufferReader(data)),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=self._names
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self.layout.sep,
                newlines_in_values=True,
                invalid_row_handler=on_bad_row,  # type: ignore[arg-type]
            ),
            self._convert,
        )

    def _bad_row(self, block: Block, error: Exception) -> DataError:
        url = self.layout.file.url
        bad: list[Any] = []

        def refuse(row: Any) -> str:
            bad.append(row)
            return "error"

        # The handler is given the row as text, which not every file is.
        with contextlib.suppress(pa.ArrowInvalid):
            self._parse(block.data.decode(errors="replace").encode(), refuse)
        if not bad:
            return DataError(
                f"{url}: rows from {block.first + 2} on cannot be read: {reason(error)}."
            )
        row = bad[0]
        number = block.first + 1 + row.number
        text = row.text if len(row.text) <= 80 else row.text[:77] + "..."
        return DataError(
            f"{url}: row {number} (the header is row 1) has {row.actual_columns} fields, the "
            f"header {row.expected_columns}: {text!r}. Correct the row, or give the right sep "
            f"(now {self.layout.sep!r})."
        )


def _header(file: File, sep: str) -> _Layout:
    with open_stream(file) as stream:
        first = next(scan(stream, sep.encode(), file.url), None)
    if first is None:
        return _Layout(file, sep, ())
    if b"\0" in first.data:
        raise DataError(
            f"{file.url}: its header is no text ({first.data[:20]!r}...). Save it as UTF-8, "
            "or name another format with reader_type."
        )
    text = first.data.decode(errors="replace")
    return _Layout(file, sep, tuple(next(csv.reader([text.rstrip("\r\n")], delimiter=sep))))


def _separator(file: File, sep: str | None) -> str:
    if sep is None:
        return "\t" if file.path.removesuffix(".gz").endswith(".tsv") else ","
    if not isinstance(sep, str) or len(sep.encode()) != 1 or sep in '\r\n"':
        raise InvalidValue(f"Invalid sep {sep!r}: give one character, for example sep=';'.")
    return sep


def _check_headers(layouts: Sequence[_Layout], chosen: Sequence[str] | None) -> None:
    """A row of numbers is a header only for those who ask for columns of such names."""
    for layout in layouts:
        header = layout.header
        if header and all(map(_is_number, header)) and not set(chosen or ("",)) <= set(header):
            row = layout.sep.join(header)
            shown = row if len(row) <= 80 else row[:77] + "..."
            raise DataError(
                f"{layout.file.url}: its first row reads as data, not as names of columns: "
                f"{shown!r}. Put a header row above it, for example a{layout.sep}b{layout.sep}c. "
                f"If these are names, give them: columns={list(header[:2])!r}."
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_same(layouts: Sequence[_Layout], names: Sequence[str]) -> None:
    """Without `columns` the files must agree on what a record is."""
    for layout in layouts:
        if layout.header and (extra := [n for n in layout.header if n not in names]):
            raise DataError(
                f"{layout.file.url} has a column {extra[0]!r} that {layouts[0].file.url} has not. "
                "Name the columns to read: columns=['a', 'b']."
            )
