"""`Profile`: statistics of rows, taken while they stream past, in memory that does not grow with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from elasticdl.tabular.distinct import Distinct
from elasticdl.tabular.types import CASTABLE, MISSING, Array, family, floats, plain, seconds, whole

__all__ = ["ColumnProfile", "Moments", "Profile"]

NUMBERS_KEPT = 10_000
TEXTS_KEPT = 1_000


class Moments:
    """Mean and variance of finite numbers, a batch at a time, after Chan, Golub and LeVeque."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0
        self.min = math.inf
        self.max = -math.inf

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # found out by whoever uses the variance
            count, mean = len(values), float(np.mean(values))
            self._squares += float(np.sum(np.square(values - mean)))
        total, distance = self.count + count, mean - self.mean
        self._squares += distance * distance * self.count * count / total
        self.mean += distance * count / total
        self.count = total
        self.min = min(self.min, float(np.min(values)))
        self.max = max(self.max, float(np.max(values)))

    @property
    def variance(self) -> float:
        """Over all values, as Keras' `adapt` has it."""
        return self._squares / self.count if self.count else 0.0


class Reservoir:
    """A sample in which every value that went past is equally likely; the same each time."""

    def __init__(self, size: int, dtype: Any) -> None:
        self._kept = np.empty(size, dtype)
        self._seen = 0
        self._random = np.random.default_rng(0)

    @property
    def values(self) -> list[Any]:
        return list(self._kept[: self._seen].tolist())

    def choose(self, num_values: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of the next values to take, and the places where each of them goes."""
        size = len(self._kept)
        first = np.arange(max(0, min(num_values, size - self._seen)))
        later = np.arange(len(first), num_values)
        slots = (self._random.random(len(later)) * (self._seen + later + 1)).astype(np.int64)
        taken = slots < size
        places = np.concatenate([first + self._seen, slots[taken]])
        self._seen += num_values
        return np.concatenate([first, later[taken]]), places

    def put(self, values: Any, places: np.ndarray) -> None:
        self._kept[places] = values


class ColumnProfile:
    """What is known of one column.

    Attributes:
      nulls: how many rows have none.
      odd: how many have a NaN or an infinity.
      moments: of numbers, booleans and times, the latter in seconds.
      distinct: the different values; strings, bytes, int, float, bool or seconds.
      sample: some of the values.
    """

    def __init__(self, field: Any) -> None:
        self.name = field.name
        self.type = field.type
        self.family = family(field.type)
        self.nulls = self.odd = 0
        self.moments = Moments()
        self.distinct = Distinct(estimated=self.family in ("text", "binary"))
        is_text = self.family in ("text", "binary")
        self.sample = Reservoir(*((TEXTS_KEPT, object) if is_text else (NUMBERS_KEPT, np.float64)))

    @property
    def fits_int64(self) -> bool:
        """Whether all whole numbers have a place among int64, of which the smallest means NULL."""
        if self.family != "integer" or not self.moments.count:
            return True
        if self.distinct.counts is not None:
            return all(MISSING < value < 2**63 for value in self.distinct.counts)
        return self.moments.min > MISSING and self.moments.max < 2**63

    @property
    def examples(self) -> list[Any]:
        """All different values where they are few, else some values."""
        return list(self.sample.values if self.distinct.counts is None else self.distinct.counts)

    def add(self, array: Array) -> None:
        self.nulls += array.null_count
        if self.family in ("text", "binary"):
            self._add_texts(plain(array).drop_null())
        elif self.family == "time":
            times = seconds(plain(array))
            self._add_numbers(times[times != MISSING])
        elif self.family in CASTABLE:
            values = plain(array).drop_null()
            exact = whole(values) if self.family != "number" else None
            self._add_numbers(floats(values), exact)

    def _add_texts(self, values: Array) -> None:
        self.distinct.add(values)
        chosen, places = self.sample.choose(len(values))
        taken = values.take(pa.array(chosen))
        self.sample.put(taken.to_numpy(zero_copy_only=False), places)

    def _add_numbers(self, values: np.ndarray, exact: Array | None = None) -> None:
        finite = values
        if values.dtype.kind == "f" and not (is_finite := np.isfinite(values)).all():
            finite = values[is_finite]
            self.odd += len(values) - len(finite)
        if self.distinct.counts is not None:
            self.distinct.add(pa.array(finite) if exact is None else exact)
        as_float = finite.astype(np.float64, copy=False)
        self.moments.add(as_float)
        chosen, places = self.sample.choose(len(as_float))
        self.sample.put(as_float[chosen], places)


class Profile:
    """Statistics of all columns of some rows.

    >>> profile = Profile(pa.schema({"x": pa.int64()}))
    >>> profile.add(pa.record_batch({"x": [1, 3]}))
    >>> profile.num_rows, profile.columns["x"].moments.mean
    (2, 2.0)
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.num_rows = 0
        self._by_place = [ColumnProfile(field) for field in schema]
        self.columns = {column.name: column for column in self._by_place}

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at some more rows."""
        self.num_rows += batch.num_rows
        for column, array in zip(self._by_place, batch.columns, strict=True):
            column.add(array)
