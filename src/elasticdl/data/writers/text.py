"""CSV and JSON lines. Numbers have as many digits as are needed to read them back exactly.

    CSV          a column `name` for a number or an array of one; `name_0`, `name_1`, ... for an array of
                 several; JSON text for anything of more dimensions or of varying length
    JSON lines   an object a row: numbers, text, and (nested) lists; null for what is not finite

Bytes are text: what in them is not UTF-8 is written as `\\xNN`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from elasticdl.data.source import ArraySpec
from elasticdl.data.writers.formats import Columns, Schema, Writer
from elasticdl.errors import ContractError

__all__ = ["csv_writer", "join_csv", "join_jsonl", "jsonl_writer", "text_of"]


def csv_writer(file: IO[bytes], schema: Schema) -> Writer:
    return _CsvWriter(file, schema)


def jsonl_writer(file: IO[bytes], schema: Schema) -> Writer:
    return _JsonWriter(file)


def join_csv(parts: Iterable[IO[bytes]], file: IO[bytes]) -> None:
    """One after the other, with one header."""
    for number, part in enumerate(parts):
        header = part.readline()
        file.write(b"" if number else header)
        shutil.copyfileobj(part, file)


def join_jsonl(parts: Iterable[IO[bytes]], file: IO[bytes]) -> None:
    for part in parts:
        shutil.copyfileobj(part, file)


class _CsvWriter:
    def __init__(self, file: IO[bytes], schema: Schema) -> None:
        self._file = file
        self._schema = schema
        names = [name for key, spec in schema.items() for name in _csv_names(key, spec)]
        if len(set(names)) < len(names):
            raise ContractError(
                f"The outputs {', '.join(schema)} make columns of one name: {', '.join(names)}. "
                "Name the model's outputs otherwise, or write another format than CSV."
            )
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(names)
        file.write(header.getvalue().encode())

    def write(self, columns: Columns) -> None:
        arrays = [a for key, spec in self._schema.items() for a in _csv_arrays(columns[key], spec)]
        table = pa.table(arrays, names=[str(i) for i in range(len(arrays))])
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
        buffer = io.BytesIO()
        pyarrow.csv.write_csv(table, buffer, options)
        self._file.write(buffer.getvalue())

    def close(self) -> None:
        pass


def _csv_names(key: str, spec: ArraySpec) -> list[str]:
    width = _csv_width(spec)
    return [f"{key}_{i}" for i in range(width)] if width is not None and width > 1 else [key]


def _csv_arrays(values: Any, spec: ArraySpec) -> Iterator[Any]:
    width = _csv_width(spec)
    if width is None:
        yield pa.array(_json_rows(values), pa.string())
        return
    table = values.reshape(len(values), width)
    for i in range(width):
        column = table[:, i]
        yield text_of(column) if column.dtype == object else pa.array(np.ascontiguousarray(column))


def _csv_width(spec: ArraySpec) -> int | None:
    """How many columns; None for what is written as JSON."""
    if not spec.shape:
        return 1
    return spec.shape[0] if len(spec.shape) == 1 and spec.shape[0] else None


def text_of(values: Any) -> Any:
    """Bytes as an Arrow array of text."""
    return pa.array([_text(value) for value in values.tolist()], pa.string())


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


class _JsonWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, columns: Columns) -> None:
        keys = [json.dumps(name, ensure_ascii=False) for name in columns]
        texts = [_json_rows(values) for values in columns.values()]
        lines = (
            "{" + ", ".join(f"{key}: {text}" for key, text in zip(keys, row, strict=True)) + "}\n"
            for row in zip(*texts, strict=True)
        )
        self._file.write("".join(lines).encode())

    def close(self) -> None:
        pass


def _json_rows(values: Any) -> list[str]:
    """The JSON text of each row."""
    if isinstance(values, list) or values.dtype == object:
        return [json.dumps(_plain(row), ensure_ascii=False) for row in values]
    texts = _number_texts(values)
    for size in reversed(values.shape[1:]):
        if not size:
            texts = ["[]"] * math.prod(values.shape[: values.ndim - 1])
        else:
            rows = (texts[i : i + size] for i in range(0, len(texts), size))
            texts = [f"[{', '.join(row)}]" for row in rows]
    return texts


def _number_texts(values: Any) -> list[str]:
    flat = pa.array(np.ascontiguousarray(values).ravel())
    texts: list[str] = pc.cast(flat, pa.string()).to_pylist()
    if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
        return [t if t[-1].isdigit() or t[-1] == "." else "null" for t in texts]
    return texts


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
