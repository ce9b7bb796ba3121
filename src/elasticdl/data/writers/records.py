"""RecordIO and TFRecord files: a `tf.train.Example` a row.

A number is a list of one; an array of more than one dimension is flat, with its shape beside it as
`<name>_shape`.
"""

from __future__ import annotations

import math
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
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

    def write(self, columns: Columns) -> None:
        import tensorflow as tf

        features = self._features(columns)
        for row in zip(*features.values(), strict=True):
            named = tf.train.Features(feature=dict(zip(features, row, strict=True)))
            self._write(tf.train.Example(features=named).SerializeToString(deterministic=True))

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
