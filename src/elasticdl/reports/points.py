"""A batch taken apart into data points, and what an evaluation function answered made a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from elasticdl.errors import DataError

__all__ = ["PointArray", "arrays_of", "copy_of", "ids_of", "number_of", "points_of"]

Id = str | int | float


class PointArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array that can also be asked as a tensor is: `y_pred.numpy()`."""

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        return self.view(np.ndarray)


def arrays_of(batch: Any) -> Any:
    """The arrays of a batch: a tensor becomes an array, a dict or tuple of them stays one."""
    if isinstance(batch, Mapping):
        return {key: arrays_of(part) for key, part in batch.items()}
    if isinstance(batch, tuple) or (isinstance(batch, list) and _holds_arrays(batch)):
        return tuple(arrays_of(part) for part in batch)
    if hasattr(batch, "numpy"):
        batch = batch.numpy()
    return np.asarray(batch)


def copy_of(arrays: Any) -> Any:
    """A copy to give away: a function that writes into what it gets alters nothing for the next."""
    if isinstance(arrays, dict):
        return {key: copy_of(part) for key, part in arrays.items()}
    if isinstance(arrays, tuple):
        return tuple(copy_of(part) for part in arrays)
    return arrays.copy()


def points_of(arrays: Any, count: int, what: str) -> list[Any]:
    """One value a data point: numpy scalars, `PointArray`s, or dicts and tuples of them."""
    if isinstance(arrays, dict):
        parts = [points_of(part, count, f"{what}[{key!r}]") for key, part in arrays.items()]
        return [dict(zip(arrays, point, strict=True)) for point in _across(parts, count)]
    if isinstance(arrays, tuple):
        parts = [points_of(part, count, f"{what}[{i}]") for i, part in enumerate(arrays)]
        return list(_across(parts, count))
    length = len(arrays) if arrays.ndim else None
    if length != count:
        raise DataError(
            f"A batch has {count} data ids, but its {what} are an array of shape {arrays.shape}. "
            "The first dimension counts the data points: make both as long."
        )
    # Iterating is the fastest way to slice, and gives views of the same class.
    return list(arrays.view(PointArray)) if arrays.dtype != object else list(arrays)


def ids_of(ids: Any) -> list[Id]:
    """Data ids as text or Python numbers, whatever they came as."""
    if hasattr(ids, "numpy"):
        ids = ids.numpy()
    if isinstance(ids, np.ndarray):
        if ids.ndim == 2 and ids.shape[1] == 1:
            ids = ids[:, 0]
        ids = ids.astype(str) if ids.dtype.kind in "mM" else ids
        ids = ids.tolist() if ids.ndim else [ids.item()]
    return [one if type(one) is str else _plain_id(one) for one in ids]


def number_of(answer: Any) -> float | None:
    """What a function answered as a float; None for what is no single number."""
    if isinstance(answer, float | int | np.bool_):
        return _float(answer)
    if not isinstance(answer, np.generic):
        if getattr(answer, "shape", None) is None:
            return _float(answer) if hasattr(answer, "__float__") else None
        if tuple(answer.shape) != ():
            return None
        answer = answer.numpy() if hasattr(answer, "numpy") else answer
        answer = np.asarray(answer)[()]
    dtype = np.dtype(answer.dtype)
    # bfloat16 and its like are no kind of numpy's own.
    return _float(answer) if dtype.kind in "biuf" or "float" in dtype.name else None


def _holds_arrays(batch: list[Any]) -> bool:
    return bool(batch) and all(isinstance(part, Mapping | tuple) or np.ndim(part) for part in batch)


def _across(parts: list[list[Any]], count: int) -> Iterable[tuple[Any, ...]]:
    return zip(*parts, strict=True) if parts else [()] * count


def _plain_id(one: Any) -> Id:
    if hasattr(one, "numpy"):
        one = one.numpy()
    if isinstance(one, np.generic):
        one = one.item()
    if isinstance(one, bytes | bytearray):
        return bytes(one).decode("utf-8", "backslashreplace")
    return one if isinstance(one, str | int | float) else str(one)


def _float(answer: Any) -> float | None:
    try:
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        return None
