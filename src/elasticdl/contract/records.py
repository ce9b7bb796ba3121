"""Records as the dicts of numpy values that the first contract's `input_fn` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from elasticdl.errors import DataError

__all__ = ["Record", "blank", "decode_example", "rows_of"]

Record = dict[str, Any]


def rows_of(element: Any, column_names: Sequence[str] | None) -> Callable[..., list[Record]]:
    """A function from a batch's arrays to its records, by the form of one record.

    `tf.train.Example` bytes, a dict of values, or a row of named columns.
    """
    if isinstance(element, Mapping):
        keys = sorted(element)  # the order in which tf.nest flattens a dict
        return lambda *arrays: [
            dict(zip(keys, row, strict=True)) for row in zip(*arrays, strict=True)
        ]
    rank = getattr(getattr(element, "shape", None), "rank", None)
    if rank == 0:
        return lambda serialized: [decode_example(s) for s in serialized]
    if rank == 1 and column_names:
        return lambda rows: [dict(zip(column_names, row, strict=True)) for row in rows]
    raise DataError(
        "input_fn(records) needs serialized tf.train.Example records or named columns, and these "
        "records are "
        f"{element}. Write dataset_fn(dataset, mode) for them."
    )


def decode_example(serialized: bytes) -> Record:
    """What an Example holds: bytes as they are, numbers as arrays, one number as a numpy scalar."""
    import tensorflow as tf

    try:
        example = tf.train.Example.FromString(serialized)
    except Exception as error:
        raise DataError(
            f"A record of {len(serialized)} bytes is not a serialized tf.train.Example, which "
            "input_fn(records) "
            "needs. Write dataset_fn(dataset, mode) for other records."
        ) from error
    return {key: _value(feature) for key, feature in example.features.feature.items()}


def _value(feature: Any) -> Any:
    kind = feature.WhichOneof("kind")
    if kind == "bytes_list":
        values = feature.bytes_list.value
        return values[0] if len(values) == 1 else np.array(list(values), dtype=object)
    if kind == "int64_list":
        array = np.array(feature.int64_list.value, dtype=np.int64)
    else:
        array = np.array(feature.float_list.value, dtype=np.float32)
    return array[0] if len(array) == 1 else array


def blank(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Zeros in place of a value that is not there."""
    if dtype == np.dtype(object):
        return b""
    return dtype.type(0) if shape in ((), (1,)) else np.zeros(shape, dtype)
