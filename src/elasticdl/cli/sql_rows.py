"""Rows on the screen, in a pipe, or in a file."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click
import pyarrow as pa

from elasticdl.errors import InvalidValue, OutputExists
from elasticdl.sql.rows import Rows
from elasticdl.sql.shown import NULL, Shown, text_table
from elasticdl.storage import is_local, place, storage_errors

__all__ = ["RowsFile", "check_output", "show_rows"]

SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet"}


def check_output(output: str | None, format_: str | None, *, overwrite: bool) -> None:
    """Raises before anything is run if the rows could not be written."""
    if output is None:
        if format_ == "parquet":
            raise InvalidValue("--format=parquet is for a file: give an --output.")
        return
    _file_format(output, format_)
    if place(output).exists() and not overwrite:
        raise OutputExists(f"{output} exists already. Give --overwrite to replace it.")


def show_rows(rows: Rows, format_: str, limit: int | None) -> None:
    """Print rows to stdout; a table has the first ones only."""
    if format_ == "table":
        shown = Shown.of(rows, sys.maxsize if limit is None else limit)
        if sys.stdout.isatty():
            _print_rich(shown)
        else:
            click.echo(text_table(shown))
        return
    sys.stdout.flush()
    stream = sys.stdout.buffer
    _WRITERS[format_](_first(rows, limit), stream)
    stream.flush()


class RowsFile:
    """A file for one statement's rows, written aside and renamed."""

    def __init__(self, output: str, format_: str | None, limit: int | None) -> None:
        self._output, self._limit = output, limit
        self._format = _file_format(output, format_)
        self._written = False

    def write(self, rows: Rows) -> int:
        """Write them and say how many they are."""
        if self._written:
            rows.close()
            raise InvalidValue(
                f"{self._output} has the rows of a statement, and another one returns rows too. "
                "Run them with an --output each."
            )
        self._written = True
        count = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in kept:
                count += batch.num_rows
                yield batch

        kept = _first(rows, self._limit)
        with rows, _aside(self._output) as stream:
            _WRITERS[self._format](Rows(rows.schema, counted()), stream)
        return count


def _file_format(output: str, format_: str | None) -> str:
    if format_ == "table":
        raise InvalidValue("--format=table is for the screen. Give csv, json or parquet.")
    found = format_ or SUFFIXES.get(Path(output).suffix.lower())
    if found is None:
        raise InvalidValue(
            f"Invalid --output {output!r}: its name does not say how to write the rows. "
            "Name it .csv, .json or .parquet, or give a --format."
        )
    return found


@contextmanager
def _aside(output: str) -> Iterator[BinaryIO]:
    where = place(output)
    with storage_errors(where):
        where.parent.mkdir(parents=True, exist_ok=True)
        directory = str(where.parent) if is_local(where) else None
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".elasticdl-", delete=False) as file:
            aside = Path(file.name)
            try:
                yield file  # type: ignore[misc]
                file.flush()
                if is_local(where):
                    aside.chmod(0o666 & ~_umask())
                    os.replace(aside, str(where))
                else:
                    where.fs.put_file(file.name, where.path)
            finally:
                aside.unlink(missing_ok=True)


def _umask() -> int:
    """Python can only read it by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _first(rows: Rows, limit: int | None) -> Rows:
    """At most so many rows; the others are not asked for."""
    if limit is None:
        return rows

    def cut() -> Iterator[pa.RecordBatch]:
        room = limit
        for batch in rows:
            yield batch.slice(0, room)
            room -= min(room, batch.num_rows)
            if not room:
                return

    return Rows(rows.schema, cut(), rows.close)


def _print_rich(shown: Shown) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ROUNDED)
    for name, numeric in zip(shown.names, shown.numeric, strict=True):
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in shown.rows:
        table.add_row(*(Text(NULL, style="dim") if c is None else Text(c) for c in row))
    console = Console()
    console.print(table)
    if shown.ending:
        console.print(Text(shown.ending, style="dim"))


def _write_csv(rows: Rows, stream: BinaryIO) -> None:
    from pyarrow import csv

    schema = pa.schema(
        [pa.field(f.name, pa.string() if _is_odd(f.type) else f.type) for f in rows.schema]
    )
    with rows, csv.CSVWriter(stream, schema) as writer:
        for batch in rows:
            columns = [_as_text(column) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _is_odd(kind: pa.DataType) -> bool:
    """A type that CSV has no form for: lists, structs, and types of others."""
    return bool(pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType))


def _as_text(column: Any) -> Any:
    if not _is_odd(column.type):
        return column
    texts = [
        None if v is None else v if isinstance(v, str) else _json(v) for v in column.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _write_json(rows: Rows, stream: BinaryIO) -> None:
    """One array, an object a line."""
    between = b"[\n"
    with rows:
        for batch in rows:
            for row in batch.to_pylist():
                stream.write(between + _json(row).encode())
                between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def _json(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False)
    return _plain(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _write_parquet(rows: Rows, stream: BinaryIO) -> None:
    from pyarrow import parquet

    with rows, parquet.ParquetWriter(stream, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


_WRITERS: dict[str, Callable[[Rows, BinaryIO], None]] = {
    "csv": _write_csv,
    "json": _write_json,
    "parquet": _write_parquet,
}
