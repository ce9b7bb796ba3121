"""Which columns a trained model needs, found at the end of its training with real values.

Nobody says which column is the label. The user's dataset function is run in prediction mode on some records as
they are, and again with the values of columns exchanged between the records: when the features stay the same, it
does not look there. The answer goes into the trained model, so that prediction need not guess.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Batches
from elasticdl.data.ledger import Lease
from elasticdl.data.pipeline import Pipeline
from elasticdl.data.readers.arrays import ArraySource
from elasticdl.data.source import ArraySpec, Metadata, Source
from elasticdl.engine.inputs import split_minibatch
from elasticdl.runtime.sample import take_sample

__all__ = ["FILL", "Needed", "find_needed", "has_rows"]

FILL = b"0"
"""What stands in a column that is not needed and not there. As a number it can be read."""

_MAX_TESTS = 128
"""So many sets of columns are tried; what is not settled then counts as needed."""

_CELLS = 200_000
"""So many values go into a run."""

_FEW, _LEAST = 32, 8
_RUN_BYTES = 16 << 20
_RUN_S = 0.1
"""What a run may take. The function is tried with a few records first."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Needed:
    """What prediction must know of the columns.

    Attributes:
      columns: those that the features depend on; none when that is not known, and all are needed.
      row: those that make a row in prediction, of a function that takes whole rows; none when it is all.
    """

    columns: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


def has_rows(source: Source) -> bool:
    """Whether records are rows of strings that have names."""
    names, form = source.metadata.column_names, source.structure
    return (
        bool(names)
        and isinstance(form, ArraySpec)
        and form.dtype == object
        and len(form.shape) == 1
    )


def find_needed(
    batches: Batches, source: Source, features: Any, *, ragged: bool = False, seed: int = 0
) -> Needed:
    """What the user's dataset function looks at in prediction mode.

    Args:
      batches: the user's dataset function, with its batching.
      source: the training data.
      features: the specs of the features that the model was trained on.
      ragged: whether the records of a minibatch differ in shape.
      seed: of the training.
    """
    names = source.metadata.column_names
    if names is None or not has_rows(source):
        return Needed()
    rows = take_sample(source)
    everything = range(len(names))

    def trial(columns: Iterable[int], mode: Mode) -> _Trial:
        chosen = list(columns)
        return _Trial(batches, [names[i] for i in chosen], rows[:, chosen], mode, ragged, seed)

    with trial(everything, Mode.PREDICTION) as prediction:
        rows = prediction.afford()
        if _fits(prediction.base, features):
            needed = _without(everything, prediction.not_needed())
            return Needed(columns=tuple(names[i] for i in needed))
    with trial(everything, Mode.EVALUATION) as evaluation:
        row = _without(everything, evaluation.not_needed())
        seen = evaluation.base
    with trial(row, Mode.PREDICTION) as prediction:
        if len(row) < len(names) and _same_records(prediction.base, seen):
            found = tuple(names[i] for i in row)
            return Needed(columns=found, row=found)
    return Needed()


class _Records(ArraySource):
    """Rows in memory that can be exchanged for others: a graph that reads them is traced once."""

    def __init__(self, names: Sequence[str], rows: Array) -> None:
        super().__init__(rows)
        self._rows = rows
        self._metadata = Metadata(column_names=tuple(names))

    @cached_property
    def tensors(self) -> Any:
        import tensorflow as tf

        with tf.init_scope(), tf.device("CPU:0"):
            shape = [None, self._rows.shape[1]]
            return tf.Variable(self._rows, trainable=False, dtype=tf.string, shape=shape)


class _Trial:
    """Records, run through the user's function again and again with other values in them."""

    def __init__(
        self,
        batches: Batches,
        names: Sequence[str],
        rows: Array,
        mode: Mode,
        ragged: bool,
        seed: int,
    ) -> None:
        self._original = rows
        self._source = _Records(names, rows)
        self._pipeline = Pipeline(self._source, batches, mode, len(rows), seed)
        if ragged:
            self._pipeline.ragged = True
        self._mode = mode
        self._batch_size = len(rows)
        self._num_tests = 0

    def __enter__(self) -> _Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()

    @cached_property
    def base(self) -> list[Array] | None:
        """The features of the records as they are; None when the function fails on them."""
        return self._run([self._original])[0]

    def afford(self) -> Array:
        """Fewer records, if the function takes long or makes much of one, such as an image; which are left."""
        few = _spread(self._original, _FEW)
        self._run([few])  # which traces
        began = time.monotonic()
        seen = self._run([few])[0]
        seconds = time.monotonic() - began
        size = sum(array.nbytes for array in seen or ()) / len(few)
        num_records = int(min(_RUN_BYTES / max(1, size), len(self._original)))
        if seconds > _RUN_S:
            num_records = min(num_records, int(len(few) * _RUN_S / seconds))
        self._original = _spread(self._original, max(_LEAST, num_records))
        return self._original

    def not_needed(self) -> list[int]:
        """The columns that the features are the same without; none when the function fails or is random."""
        if not self.base or not _same(self.base, self._features([self._original])[0]):
            return []
        # A column of a single value cannot be told: it may decide a feature with its next one.
        told = [i for i, column in enumerate(self._original.T) if (column != column[0]).any()]
        sets = self._halve(_without(told, self._seen_alone(told)))
        found = [i for one in sets for i in one]
        return found if len(sets) < 2 or self._is_idle(found) else []

    def _seen_alone(self, columns: Sequence[int]) -> set[int]:
        """The columns that have a number among the features of their own.

        Of a wide table most columns are such. The bits of a column's number say in which runs its values
        are exchanged, so a number that changes in these runs alone spells the column it is made of.
        """
        bits = range(max(1, (len(columns) - 1).bit_length()))
        sets = [
            [c for i, c in enumerate(columns) if i >> b & 1 == on] for b in bits for on in (1, 0)
        ]
        runs = self._features([_rotated(self._original, one) for one in sets])
        changes = [_changes(self.base, run) for run in runs]
        found: Any = 0
        told: Any = True
        for bit, (on, off) in enumerate(zip(changes[::2], changes[1::2], strict=True)):
            if on is None or off is None:
                return set()
            found, told = found | on.astype(np.int64) << bit, told & (on ^ off)
        return {columns[i] for i in np.unique(found[told]).tolist() if i < len(columns)}

    def _halve(self, columns: list[int]) -> list[list[int]]:
        """Sets of those columns that are not needed; large ones are found at once."""
        self._num_tests += 1
        if not columns or self._num_tests > _MAX_TESTS:
            return []
        if self._is_idle(columns):
            return [columns]
        if len(columns) == 1:
            return []
        middle = len(columns) // 2
        return self._halve(columns[:middle]) + self._halve(columns[middle:])

    def _is_idle(self, columns: list[int]) -> bool:
        """Whether the features do not change with the columns, nor with what will stand in their place."""
        variants = [_rotated, _shuffled]
        if self._mode == Mode.PREDICTION:  # an evaluation has all columns
            variants.append(_filled)
        runs = self._features([vary(self._original, columns) for vary in variants])
        return all(_same(self.base, run) for run in runs)

    def _features(self, variants: Sequence[Array]) -> list[list[Array] | None]:
        """The features of several variants, in as few runs as can be: one takes milliseconds to begin."""
        found: list[list[Array] | None] = []
        many = max(1, _CELLS // self._original.size)
        if self._mode != Mode.PREDICTION or len(self._original) < self._batch_size:
            many = 1  # a shuffle would mix them, and so would a minibatch
        for i in range(0, len(variants), many):
            some = variants[i : i + many]
            runs = self._run(some)
            if len(some) > 1 and not all(run and _alike(run, self.base) for run in runs):
                # One fails, or examples were left out and those of the next moved up.
                runs = [self._run([one])[0] for one in some]
            found += runs
        return found

    def _run(self, variants: Sequence[Array]) -> list[list[Array] | None]:
        """The features of each variant as flat arrays; None when the function fails on one of them."""
        import tensorflow as tf

        rows = np.concatenate(variants)
        self._source.tensors.assign(rows)
        shard = self._source.shards[0].name
        lease = Lease(epoch=0, number=0, shard=shard, start=0, end=len(rows))
        try:
            elements = list(self._pipeline.elements(lease))
        except Exception:  # whatever the user's code raises: with such values it cannot be told
            self._pipeline.close()
            return [None] * len(variants)
        if self._mode != Mode.PREDICTION:
            elements = [split_minibatch(element).features for element in elements]
        flat = [
            [tensor.numpy() for tensor in tf.nest.flatten(element, expand_composites=True)]
            for element in elements
        ]
        if len(variants) == 1:
            return [[array for arrays in flat for array in arrays]]
        return [*flat] if len(flat) == len(variants) else [None] * len(variants)


def _spread(rows: Array, num_records: int) -> Array:
    """So many of the rows, from the first to the last."""
    if num_records >= len(rows):
        return rows
    return rows[np.linspace(0, len(rows) - 1, num_records).astype(np.int64)]


def _without(columns: Iterable[int], others: Iterable[int]) -> list[int]:
    left_out = set(others)
    return [i for i in columns if i not in left_out]


def _rotated(rows: Array, columns: Sequence[int]) -> Array:
    """Each record with the values of the one before it: whatever has two values changes somewhere."""
    changed = rows.copy()
    changed[:, columns] = np.roll(rows[:, columns], 1, axis=0)
    return changed


def _shuffled(rows: Array, columns: Sequence[int]) -> Array:
    """Each column in an order of its own: what depends on two of them together changes too."""
    changed, order = rows.copy(), np.random.default_rng(0)
    for i in columns:
        changed[:, i] = order.permutation(rows[:, i])
    return changed


def _filled(rows: Array, columns: Sequence[int]) -> Array:
    changed = rows.copy()
    changed[:, columns] = FILL
    return changed


def _fits(found: list[Array] | None, features: Any) -> bool:
    """Whether features have the form of those that the model was trained on."""
    import tensorflow as tf

    specs = tf.nest.flatten(features, expand_composites=True)
    return (
        found is not None
        and len(found) == len(specs)
        and all(
            tf.TensorShape(a.shape)[1:].is_compatible_with(s.shape[1:])
            for a, s in zip(found, specs, strict=True)
        )
    )


def _alike(one: list[Array] | None, other: list[Array] | None) -> bool:
    """Whether both are there and of the same form."""
    if one is None or other is None:
        return False
    return [array.shape for array in one] == [array.shape for array in other]


def _changes(one: list[Array] | None, other: list[Array] | None) -> Array | None:
    """For each number of an example's features, whether it changes in any; None: that cannot be told."""
    if not one or not other or not _alike(one, other):
        return None
    pairs = zip(one, other, strict=True)
    return np.concatenate([_differ(a, b).any(axis=0).ravel() for a, b in pairs])


def _differ(one: Array, other: Array) -> Array:
    """Element by element; what is not a number equals itself here."""
    both_nan = (one != one) & (other != other)
    return np.asarray((one != other) & ~both_nan, dtype=bool)


def _same(one: list[Array] | None, other: list[Array] | None) -> bool:
    if one is None or other is None or not _alike(one, other):
        return False
    return not any(_differ(a, b).any() for a, b in zip(one, other, strict=True))


def _same_records(one: list[Array] | None, other: list[Array] | None) -> bool:
    """The same in whatever order: an evaluation may shuffle."""
    if one is None or other is None or not _alike(one, other):
        return False
    return all(
        sorted(map(repr, a.tolist())) == sorted(map(repr, b.tolist()))
        for a, b in zip(one, other, strict=True)
    )
