"""Records of a user's reader, one by one, stacked into a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elasticdl.data.chunks import bytes_array
from elasticdl.data.source import Chunk
from elasticdl.errors import DataError

__all__ = ["stack"]


def stack(records: Sequence[Any], types: Any, shard: str) -> Chunk:
    """One chunk of records of one form: bytes, numbers, arrays; dicts or tuples of these.

    `types` is the reader's `records_output_types`, if it has any.
    """
    first = records[0]
    if isinstance(first, tuple) and (types is None or isinstance(types, tuple | list)):
        kinds = types or (None,) * len(first)
        _check(all(isinstance(r, tuple) and len(r) == len(first) for r in records), records, shard)
        columns = zip(*records, strict=True)
        return tuple(_part(list(c), k, shard) for c, k in zip(columns, kinds, strict=True))
    return _part(records, types, shard)


def _part(values: Sequence[Any], types: Any, shard: str) -> Chunk:
    first = values[0]
    if not isinstance(first, Mapping):
        return _array(values, types, shard)
    _check(all(isinstance(v, Mapping) and v.keys() == first.keys() for v in values), values, shard)
    kinds = types if isinstance(types, Mapping) else {}
    return {str(k): _array([v[k] for v in values], kinds.get(k), shard) for k in first}


def _array(values: Sequence[Any], type_: Any, shard: str) -> NDArray[Any]:
    if isinstance(values[0], bytes | str):
        _check(all(isinstance(v, bytes | str) for v in values), values, shard)
        return bytes_array([v.encode() if isinstance(v, str) else v for v in values])
    try:
        dtype = getattr(type_, "as_numpy_dtype", type_)
        array = np.asarray([_plain(v) for v in values], dtype=dtype)
    except (TypeError, ValueError) as e:
        raise _uneven(values, shard) from e
    if array.dtype.kind not in "OSU":
        return array
    flat = array.ravel().tolist()
    _check(all(isinstance(v, bytes | str) for v in flat), values, shard)
    texts = bytes_array([v.encode() if isinstance(v, str) else v for v in flat])
    return np.asarray(texts.reshape(array.shape))


def _plain(value: Any) -> Any:
    """Strings keep their trailing zeros only as objects."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], bytes | str):
        return bytes_array(value)  # type: ignore[arg-type]
    return value


def _check(even: bool, values: Sequence[Any], shard: str) -> None:
    if not even:
        raise _uneven(values, shard)


def _uneven(values: Sequence[Any], shard: str) -> DataError:
    kinds = sorted({_kind(value) for value in values})
    return DataError(
        f"Shard {shard!r}: read_records yielded records that make no array: {', '.join(kinds[:4])}"
        ". Yield records of one form: bytes, numbers, arrays of a shape, dicts or tuples of these."
    )


def _kind(value: Any) -> str:
    shape = f" of length {len(value)}" if isinstance(value, list | tuple) else ""
    shape = f" of shape {value.shape}" if hasattr(value, "shape") else shape
    return type(value).__name__ + shape
