"""RecordIO and TFRecord files: a `tf.train.Example` a row.

A number is a list of one; an array of more than one dimension is flat, with its shape beside it as
`<name>_shape`.
"""

from __future__ import annotations

import math
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

import google_crc32c
import numpy as np

from elasticdl.data.recordio import RecordWriter
from elasticdl.data.writers.formats import Columns, Schema, Writer

__all__ = ["join_recordio", "join_tfrecord", "recordio_writer", "tfrecord_writer"]


def recordio_writer(file: IO[bytes], schema: Schema) -> Writer:
    writer = RecordWriter(file)
    return _ExampleWriter(schema, writer.write, writer.close)


def tfrecord_writer(file: IO[bytes], schema: Schema) -> Writer:
    return _ExampleWriter(schema, lambda record: _write_frame(file, record), lambda: None)


def join_recordio(parts: Iterable[IO[bytes]], file: IO[bytes]) -> None:
    """Chunks stand for themselves: files of them are simply put one after the other."""
    for part in parts:
        shutil.copyfileobj(part, file)


join_tfrecord = join_recordio


class _ExampleWriter:
    def __init__(
        self, schema: Schema, write: Callable[[bytes], None], close: Callable[[], None]
    ) -> None:
        self._schema = schema
        self._write = write
        self.close = close
        self._template = _FloatTemplate(schema) if _FloatTemplate.fits(schema) else None

    def write(self, columns: Columns) -> None:
        made = self._template.fill(columns) if self._template else self._examples(columns)
        for record in made:
            self._write(record)

    def _examples(self, columns: Columns) -> Iterator[bytes]:
        features = self._features(columns)
        for row in zip(*features.values(), strict=True):
            yield _serialized(dict(zip(features, row, strict=True)))

    def _features(self, columns: Columns) -> dict[str, Iterator[Any]]:
        """Of each feature its value in every row."""
        features: dict[str, Iterator[Any]] = {}
        for name, spec in self._schema.items():
            make = _maker(spec.dtype)
            features[name] = map(make, _flat_rows(columns[name]))
            if len(spec.shape) > 1:
                whole = _maker(np.dtype(np.int64))
                features[f"{name}_shape"] = map(whole, map(_shape, columns[name]))
        return features


class _FloatTemplate:
    """Examples of floats alone differ only in their floats: all are made from one, as a matrix of bytes.

    An Example a row, made by protobuf, takes longer than many a model.
    """

    @staticmethod
    def fits(schema: Schema) -> bool:
        return all(
            np.issubdtype(spec.dtype, np.floating)
            and len(spec.shape) <= 1
            and None not in spec.shape
            for spec in schema.values()
        )

    def __init__(self, schema: Schema) -> None:
        make = _maker(np.dtype(np.float32))
        widths = {name: math.prod(n or 0 for n in spec.shape) for name, spec in schema.items()}
        marks = {name: [float(i + 0x10203)] * widths[name] for i, name in enumerate(widths)}
        one = _serialized({name: make(values) for name, values in marks.items()})
        self._bytes = np.frombuffer(one, np.uint8)
        floats = {name: np.array(values, "<f4").tobytes() for name, values in marks.items()}
        self._places = {name: one.index(found) for name, found in floats.items() if found}

    def fill(self, columns: Columns) -> Iterator[bytes]:
        num_rows, size = len(next(iter(columns.values()))), len(self._bytes)
        rows = np.tile(self._bytes, (num_rows, 1))
        for name, place in self._places.items():
            floats = np.asarray(columns[name], "<f4").reshape(num_rows, -1)
            rows[:, place : place + 4 * floats.shape[1]] = np.ascontiguousarray(floats).view(
                np.uint8
            )
        whole = rows.tobytes()
        return (whole[start : start + size] for start in range(0, len(whole), size))


def _serialized(features: Mapping[str, Any]) -> bytes:
    import tensorflow as tf

    named = tf.train.Features(feature=features)
    return bytes(tf.train.Example(features=named).SerializeToString(deterministic=True))


def _maker(dtype: np.dtype[Any]) -> Callable[[list[Any]], Any]:
    """From a list of values to a feature of their kind."""
    import tensorflow as tf

    if dtype.kind == "O":
        return lambda row: tf.train.Feature(bytes_list=tf.train.BytesList(value=row))
    if np.issubdtype(dtype, np.floating):
        return lambda row: tf.train.Feature(float_list=tf.train.FloatList(value=row))
    return lambda row: tf.train.Feature(int64_list=tf.train.Int64List(value=map(int, row)))


def _flat_rows(values: Any) -> Iterable[list[Any]]:
    if isinstance(values, list):
        return (list(_leaves(row)) for row in values)
    rows: list[list[Any]] = values.reshape(len(values), math.prod(values.shape[1:])).tolist()
    return rows


def _leaves(row: Any) -> Iterator[Any]:
    if isinstance(row, list | np.ndarray):
        for item in row:
            yield from _leaves(item)
    else:
        yield row


def _shape(row: Any) -> list[int]:
    """The shape of a row; of rows of several lengths inside of it, only how many there are."""
    return list(row.shape) if isinstance(row, np.ndarray) else [len(row)]


def _write_frame(file: IO[bytes], record: bytes) -> None:
    length = struct.pack("<Q", len(record))
    file.write(length + _checksum(length) + record + _checksum(record))


def _checksum(data: bytes) -> bytes:
    """TFRecord's: a CRC-32C, turned and shifted so that a checksum of checksums is none."""
    crc = int(google_crc32c.value(data))
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
