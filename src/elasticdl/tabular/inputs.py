"""Minibatches of a table: the raw columns of a plan, and the label as the model's loss takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.errors import DataError, nearest
from elasticdl.tabular.examples import parse, to_examples
from elasticdl.tabular.label import CLASSIFICATION
from elasticdl.tabular.plan import Column, FeaturePlan, Label
from elasticdl.tabular.types import MISSING

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["TableBatches", "to_examples"]

SHUFFLED = 10_000
"""Records that are mixed, where they come one by one."""
LARGEST = 1 << 24
"""More rows than a lease has."""


class TableBatches:
    """The dataset function of a plan.

    Minibatches are `({column: [b]}, label)`, for prediction `{column: [b]}`. The label is float32 [b, 1] of a
    regression, and int64 [b, 1], the number of the class, of a classification.

    Args:
      plan: of the columns.
      exact: whether labels that are float64 in the plan stay so.
    """

    takes_chunks = True

    def __init__(self, plan: FeaturePlan, *, exact: bool = False) -> None:
        self.plan = plan
        self._exact = exact
        self._classes: Any = None

    def from_chunks(
        self, chunks: tf.data.Dataset, mode: str, batch_size: int, seed: tf.Tensor
    ) -> tf.data.Dataset:
        """Minibatches of a lease, whose columns come as arrays of many rows, dicts by name.

        For training all rows of the lease are mixed, in an order that the seed alone decides.
        """
        import tensorflow as tf

        columns = self._columns(mode)
        _check_names(columns, chunks.element_spec)
        is_training = mode == "training"

        def finish(chunk: dict[str, tf.Tensor]) -> Any:
            rows = _typed(columns, chunk)
            return self._split(_shuffled(rows, seed) if is_training else rows, mode)

        # All that is done is done to many rows at once; cutting them up is the last of it.
        many = chunks.rebatch(LARGEST) if is_training else chunks
        # There is nothing for AutoGraph to convert, and looking for it takes time.
        return many.map(tf.autograph.experimental.do_not_convert(finish)).rebatch(batch_size)

    def __call__(
        self,
        records: tf.data.Dataset,
        mode: str,
        metadata: Any,
        batch_size: int,
        *,
        ragged: bool = False,
    ) -> tf.data.Dataset:
        """Minibatches of records: serialized `tf.Example`s, or dicts of a value a column."""
        import tensorflow as tf

        columns, spec = self._columns(mode), records.element_spec
        if mode == "training":
            records = records.shuffle(SHUFFLED)
        batches = records.batch(batch_size)
        if isinstance(spec, Mapping):
            _check_names(columns, spec)
            return batches.map(lambda batch: self._split(_typed(columns, batch), mode))
        if isinstance(spec, tf.TensorSpec) and spec.dtype == tf.string and spec.shape.rank == 0:
            return batches.map(lambda batch: self._split(parse(batch, columns), mode))
        raise DataError(
            f"The records are {spec}, and the standard input function reads tf.Examples or rows of named columns. "
            "Give the files that `elasticdl sql export` writes."
        )

    def _columns(self, mode: str) -> tuple[Column, ...]:
        if mode == "prediction":
            return self.plan.columns
        if self.plan.label is None:
            raise DataError(f"The plan of the columns has no label, which {mode} needs.")
        return (*self.plan.columns, *self.plan.label_columns)

    def _split(self, rows: dict[str, tf.Tensor], mode: str) -> Any:
        """Features and label of some rows; for prediction the features alone."""
        import tensorflow as tf

        label = self.plan.label
        if mode == "prediction" or label is None:
            return rows
        features = {column.name: rows[column.name] for column in self.plan.columns}
        values = rows[label.name]
        if label.task != CLASSIFICATION:
            numbers = _numbers(values, label)[:, None]
            return features, numbers if self._exact else tf.cast(numbers, tf.float32)
        return features, _known(values, self._class_numbers(label, values), label)[:, None]

    def _class_numbers(self, label: Label, values: tf.Tensor) -> tf.Tensor:
        """Classes by their place, looked up in a table that belongs to no graph."""
        import tensorflow as tf

        if self._classes is None:
            known = [str(c) if label.dtype == "string" else int(c) for c in label.classes]
            with tf.init_scope():
                keys, places = tf.constant(known, label.dtype), tf.range(len(known), dtype=tf.int64)
                pairs = tf.lookup.KeyValueTensorInitializer(keys, places)
                self._classes = tf.lookup.StaticHashTable(pairs, default_value=-1)
        return self._classes.lookup(values)


def _numbers(values: tf.Tensor, label: Label) -> tf.Tensor:
    import tensorflow as tf

    message = f"The label {label.name} is NULL in a row: leave such rows out."
    check = tf.debugging.Assert(~tf.reduce_any(tf.math.is_nan(values)), [message])
    with tf.control_dependencies([check]):
        return tf.identity(values)


def _known(values: tf.Tensor, numbers: tf.Tensor, label: Label) -> tf.Tensor:
    import tensorflow as tf

    shown = ", ".join(str(c) for c in label.classes[:10]) + (
        ", ..." if len(label.classes) > 10 else ""
    )
    message = f"The label {label.name} has a value that is no class of the model ({shown}):"
    unknown = numbers < 0
    there = [message, tf.boolean_mask(values, unknown)]
    check = tf.debugging.Assert(~tf.reduce_any(unknown), there, summarize=3)
    with tf.control_dependencies([check]):
        return tf.identity(numbers)


def _shuffled(rows: dict[str, tf.Tensor], seed: tf.Tensor) -> dict[str, tf.Tensor]:
    """All rows in an order that is a function of the seed."""
    import tensorflow as tf

    number = tf.shape(next(iter(rows.values())))[0]
    keys = tf.random.stateless_uniform([number], tf.stack([seed, 0]), None, None, tf.int64)
    order = tf.argsort(keys, stable=True)
    return {name: tf.gather(values, order) for name, values in rows.items()}


def _check_names(columns: tuple[Column, ...], there: Mapping[str, Any]) -> None:
    for column in columns:
        if column.name not in there:
            raise DataError(
                f"The records have no column {column.name!r}, which the model takes. {nearest(column.name, there)}"
            )


def _typed(columns: tuple[Column, ...], rows: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {column.name: _as_dtype(rows[column.name], column.dtype) for column in columns}


def _as_dtype(values: tf.Tensor, dtype: str) -> tf.Tensor:
    """Values of a reader of another kind, such as the texts of a CSV file."""
    import tensorflow as tf

    if values.dtype == tf.as_dtype(dtype):
        return values
    if dtype == "string":
        return tf.strings.as_string(values)
    if values.dtype != tf.string:
        return tf.cast(values, dtype)
    null = str(MISSING) if dtype == "int64" else "nan"
    return tf.strings.to_number(tf.where(values == "", null, values), dtype)
