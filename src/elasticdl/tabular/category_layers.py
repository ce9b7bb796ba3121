"""Categories as columns of a matrix: each value's number, and that one-hot or embedded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from elasticdl.tabular.number_layers import is_missing
from elasticdl.tabular.plan import Feature
from elasticdl.tabular.types import MISSING

__all__ = ["Categories"]


class Categories:
    """Encodes categories of raw columns.

    A value has a number from 0 to size - 1. One that was never seen in training has -1: it is all zeros one-hot, and
    an embedding has a vector for it. Values outside of a list that the user gave have the number 0, and those of
    hash buckets are never unseen.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._inputs = inputs
        self._kinds: dict[str, Callable[[Feature, str], Any]] = {
            "vocabulary": self._vocabulary,
            "hash": self._hash,
            "id": self._id,
            "bucket": lambda feature, name: self._bucket(feature.columns[0], feature.params, name),
            "cross": self._cross,
            "sequence": self._sequence,
        }

    def encoded(self, feature: Feature, name: str) -> Any:
        """A float32 matrix."""
        import keras
        from keras import ops

        params = feature.params
        numbers, size = self._kinds[feature.kind](feature, name), int(params["size"])
        if params["encoding"] == "one_hot":
            hot = ops.one_hot(numbers, size)
            return ops.minimum(ops.sum(hot, axis=1), 1.0) if feature.kind == "sequence" else hot
        embed = keras.layers.Embedding(size + 1, params["dimension"], name=f"{name}_embedding")
        vectors = embed(ops.add(numbers, 1))
        return (
            _pooled(vectors, numbers, params["combiner"]) if feature.kind == "sequence" else vectors
        )

    def _vocabulary(self, feature: Feature, name: str) -> Any:
        import keras
        from keras import ops

        column, values = self._inputs[feature.columns[0]], list(feature.params["vocabulary"])
        if column.dtype == "string":
            # Keras keeps a word for what is unknown, which must not be one of the words.
            unknown: Any = _absent("[UNK]", values, lambda word: f"{word}_")
            make: Any = keras.layers.StringLookup
        else:
            unknown, make = (
                _absent(-1, values, lambda number: number - 1),
                keras.layers.IntegerLookup,
            )
        lookup = make(vocabulary=values, oov_token=unknown, mask_token=None, name=f"{name}_lookup")
        found = lookup(column)
        return found if feature.params["unseen"] else ops.subtract(found, 1)

    def _hash(self, feature: Feature, name: str) -> Any:
        import keras

        column = self._inputs[feature.columns[0]]
        empty: Any = "" if column.dtype == "string" else MISSING
        size = feature.params["size"]
        return keras.layers.Hashing(size, mask_value=empty, name=f"{name}_hash")(column)

    def _id(self, feature: Feature, name: str) -> Any:
        from keras import ops

        column, ids = self._inputs[feature.columns[0]], feature.params["ids"]
        known = ops.logical_and(ops.greater_equal(column, 0), ops.less(column, ids))
        return _with_missing(column, ops.where(known, column, -1), feature.params, ids)

    def _bucket(self, column_name: str, params: Mapping[str, Any], name: str) -> Any:
        import keras
        from keras import ops

        column, center = self._inputs[column_name], 0.0
        values = column
        if column.dtype != "float32":  # rounded only when it is near to its boundaries
            center = float(params["center"])
            values = ops.subtract(ops.cast(column, "float64"), center)
        boundaries = [boundary - center for boundary in params["boundaries"]]
        layer = keras.layers.Discretization(bin_boundaries=boundaries, name=f"{name}_bucket")
        buckets = layer(ops.cast(values, "float32"))
        return _with_missing(column, buckets, params, len(boundaries) + 1)

    def _cross(self, feature: Feature, name: str) -> Any:
        import keras

        keys = tuple(
            self._bucket(key["column"], key, f"{name}_{place}")
            if key["kind"] == "bucket"
            else self._inputs[key["column"]]
            for place, key in enumerate(feature.params["keys"])
        )
        return keras.layers.HashedCrossing(feature.params["size"], name=f"{name}_cross")(keys)

    def _sequence(self, feature: Feature, name: str) -> Any:
        from elasticdl.tabular.text_layers import SplitIds

        params = feature.params
        split = SplitIds(params["size"], params["separator"], name=f"{name}_split")
        return split(self._inputs[feature.columns[0]])


def _with_missing(column: Any, numbers: Any, params: Mapping[str, Any], of_null: int) -> Any:
    """NULL has a number of its own where there were any in training, and is unseen elsewhere."""
    from keras import ops

    instead = of_null if params["missing"] else -1
    return ops.where(is_missing(column), instead, numbers)


def _pooled(vectors: Any, numbers: Any, combiner: str) -> Any:
    """One vector of several."""
    from keras import ops

    known = ops.cast(ops.greater_equal(numbers, 0), "float32")
    total = ops.sum(ops.multiply(vectors, ops.expand_dims(known, -1)), axis=1)
    if combiner == "sum":
        return total
    count = ops.maximum(ops.sum(known, axis=1, keepdims=True), 1.0)
    return ops.divide(total, ops.sqrt(count) if combiner == "sqrtn" else count)


def _absent(first: Any, values: list[Any], following: Callable[[Any], Any]) -> Any:
    """The first that is not among the values."""
    known, one = set(values), first
    while one in known:
        one = following(one)
    return one
