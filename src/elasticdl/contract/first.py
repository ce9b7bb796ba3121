"""The first contract: `input_fn(records)` over a batch of decoded records, columns as its schema.

`input_fn` is numpy code, so it runs inside a dataset as one Python call a batch. The graph must
know types and shapes beforehand: types come from the columns; shapes from the model's inputs, else
from a call with records of zeros. The columns' own shapes are only a hint (the first image column
ever written says [1, 28, 28] and its input_fn returns (batch, 28, 28)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.contract.bind import describe, parameters
from elasticdl.contract.dataset import finished
from elasticdl.contract.mode import Mode
from elasticdl.contract.records import Record, blank, rows_of
from elasticdl.contract.spec import Batches
from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["Column", "Columns", "first_batches", "is_first_input"]

Shape = tuple[int | None, ...]
InputFn = Callable[[list[Record]], Any]
Look = Callable[[], "keras.Model"]


@dataclass(frozen=True)
class Column:
    """One `tf.feature_column.numeric_column`."""

    key: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, column: Any) -> Column:
        shape = tuple(int(n) for n in np.atleast_1d(column.shape))
        return cls(column.key, np.dtype(column.dtype.as_numpy_dtype), shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Columns:
    """`feature_columns()` and `label_columns()`, as the user wrote them; None where missing."""

    features: Callable[[], Sequence[Any]] | None
    labels: Callable[[], Sequence[Any]] | None


def is_first_input(fn: Callable[..., Any]) -> bool:
    """Whether a function is `input_fn(records)` rather than a dataset function."""
    found = parameters(fn) or []
    required = [p for p in found if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if len(required) != 1 or len(found) != 1:
        return False
    name = getattr(fn, "__name__", "")
    if required[0].name == "records":
        return name not in ("dataset_fn", "feed")
    return name == "input_fn" and required[0].name not in ("dataset", "ds")


def first_batches(input_fn: InputFn, columns: Columns | None, look: Look, where: str) -> Batches:
    """Batches of `input_fn(records)`."""
    if columns is None or columns.features is None or columns.labels is None:
        missing = "label_columns" if columns and columns.features else "feature_columns"
        raise ContractError(
            f"{describe('input_fn', input_fn)} takes decoded records, so {where} must have a "
            f"function {missing}(). "
            "Add it, for example `def feature_columns(): return [tf.feature_column.numeric_column("
            "key='x', dtype=tf.float32, shape=[4])]`; or write dataset_fn(dataset, mode) instead."
        )
    features = [Column.of(c) for c in columns.features()]
    labels = [Column.of(c) for c in columns.labels()]
    return _FirstBatches(input_fn, features, labels, look)


class _FirstBatches:
    def __init__(
        self, input_fn: InputFn, features: list[Column], labels: list[Column], look: Look
    ) -> None:
        self._input_fn = input_fn
        self._features = features
        self._labels = labels
        self._look = look
        self.failure: Exception | None = None
        """What the user's function raised last, with its traceback."""

    def __call__(
        self,
        records: tf.data.Dataset,
        mode: Mode,
        metadata: Any,
        batch_size: int,
        *,
        ragged: bool = False,
    ) -> tf.data.Dataset:
        import tensorflow as tf

        columns = [*self._features, *([] if mode == Mode.PREDICTION else self._labels)]
        shapes = [*self._feature_shapes(), *((None, *_squeezed(c)) for c in self._labels)]
        decode = rows_of(records.element_spec, getattr(metadata, "column_names", None))

        def run(*arrays: Any) -> list[Any]:
            try:
                return self._call(decode(*arrays), shapes, mode)
            except Exception as error:
                # TensorFlow would keep only its text.
                self.failure = error
                raise

        def load(*batch: Any) -> Any:
            types = [tf.as_dtype(c.dtype) for c in columns]
            values = tf.numpy_function(run, tf.nest.flatten(batch), types)
            values = [tf.ensure_shape(v, s) for v, s in zip(values, shapes, strict=False)]
            return self._packed(values, mode)

        return finished(records.batch(batch_size).map(load), mode)

    def _call(self, rows: list[Record], shapes: Sequence[Shape | None], mode: Mode) -> list[Any]:
        """Run the user's function on a batch; its arrays in the order of the columns."""
        if mode == Mode.PREDICTION:
            # An input_fn of this form may read the label of every record; without one it gets a zero.
            rows = [{**{c.key: blank(c.dtype, c.shape) for c in self._labels}, **r} for r in rows]
        values = self._in_columns(self._input_fn(rows), mode)
        columns = [*self._features, *self._labels]
        return [
            _shaped(np.asarray(value, dtype=column.dtype), shape)
            for value, column, shape in zip(values, columns, shapes, strict=False)
        ]

    def _in_columns(self, returned: Any, mode: Mode) -> list[Any]:
        with_labels = isinstance(returned, tuple) and len(returned) == 2
        if not with_labels and mode != Mode.PREDICTION:
            raise ContractError(
                f"{describe('input_fn', self._input_fn)} returned {type(returned).__name__}. "
                "Return the pair "
                "(model_inputs, labels)."
            )
        features, labels = returned if with_labels else (returned, None)
        values = _by_column(features, self._features, "model_inputs")
        if mode != Mode.PREDICTION:
            values += _by_column(labels, self._labels, "labels")
        return values

    def _packed(self, values: list[Any], mode: Mode) -> Any:
        count = len(self._features)
        features: Any = dict(zip(self._input_names(), values[:count], strict=True))
        if count == 1:
            features = values[0]
        if mode == Mode.PREDICTION:
            return features
        labels = values[count:]
        if len(labels) == 1:
            return features, labels[0]
        return features, {c.key: v for c, v in zip(self._labels, labels, strict=True)}

    def _input_names(self) -> list[str]:
        """The columns' keys; of a functional model with other names, its own, in that order."""
        keys = [c.key for c in self._features]
        inputs = _inputs_of(self._look())
        names = [i.name for i in inputs]
        if len(names) == len(keys) > 1 and set(names) != set(keys):
            return names
        return keys

    def _feature_shapes(self) -> list[Shape | None]:
        inputs = _inputs_of(self._look())
        if len(inputs) == len(self._features):
            by_name = {i.name: tuple(i.shape) for i in inputs}
            keys = [c.key for c in self._features]
            if set(by_name) == set(keys):
                return [by_name[key] for key in keys]
            return [tuple(i.shape) for i in inputs]
        return self._tried_shapes()

    def _tried_shapes(self) -> list[Shape | None]:
        """The shapes that `input_fn` gives for two records of zeros, as arrays, then as bytes."""
        columns = [*self._features, *self._labels]
        for as_bytes in (False, True):
            row = {c.key: blank(c.dtype, c.shape) for c in columns}
            if as_bytes:
                row |= {c.key: bytes(c.size) for c in self._features}
            try:
                values = self._in_columns(self._input_fn([row, dict(row)]), Mode.TRAINING)
                return [
                    _trusted(np.shape(value), column)
                    for value, column in zip(values, self._features, strict=False)
                ]
            except Exception:
                # Zeros need not be valid records: the shapes stay unknown until real ones come.
                continue
        return [None] * len(self._features)


def _inputs_of(model: keras.Model) -> list[Any]:
    return list(getattr(model, "inputs", None) or ())


def _by_column(values: Any, columns: Sequence[Column], what: str) -> list[Any]:
    if isinstance(values, Mapping):
        missing = [c.key for c in columns if c.key not in values]
        if missing:
            raise ContractError(
                f"input_fn returned {what} with the keys {sorted(values)}, and the columns name "
                f"{missing[0]!r}. "
                "Return a value for each column."
            )
        return [values[c.key] for c in columns]
    if len(columns) == 1:
        return [values]
    if isinstance(values, list | tuple) and len(values) == len(columns):
        return list(values)
    array = np.asarray(values)
    if array.ndim > 1 and array.shape[-1] == len(columns):
        return [array[..., i] for i in range(len(columns))]
    raise ContractError(
        f"input_fn returned {what} of shape {array.shape} for the {len(columns)} columns "
        f"{[c.key for c in columns]}. Return a dict with a value for each."
    )


def _squeezed(column: Column) -> tuple[int, ...]:
    """Labels of shape [1] are flat."""
    return () if column.shape == (1,) else column.shape


def _shaped(array: np.ndarray[Any, Any], shape: Shape | None) -> np.ndarray[Any, Any]:
    """The array in the wanted shape, where only the form differs and not the number of values."""
    if shape is None or None in shape[1:] or array.ndim == 0:
        return array
    wanted = tuple(int(n) for n in shape[1:] if n is not None)
    if array.shape[1:] != wanted and array.size == len(array) * int(np.prod(wanted)):
        return array.reshape(len(array), *wanted)
    return array


def _trusted(seen: tuple[int, ...], column: Column) -> Shape | None:
    """A shape seen on zeros: all of it when the column has as many values, else its rank only."""
    if not seen or seen[0] != 2:
        return None
    if int(np.prod(seen[1:])) == column.size:
        return (None, *seen[1:])
    return (None,) * len(seen)
