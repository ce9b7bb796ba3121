"""Class weights joined with sample weights, inside of the graph: Keras takes only one of the two."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["class_weighting"]

_EXAMPLE = "Return a dict such as {0: 1.0, 1: 2.5}, or None."


def class_weighting(weights: Any) -> Callable[[Any], Any] | None:
    """A function that multiplies a minibatch's sample weights by those of its classes; None for no weights.

    Args:
      weights: what `get_class_weight` returned: a weight for each class. A class that is not named weighs 1.
    """
    if weights is None:
        return None
    table = _table(weights)

    def convert(element: tuple[Any, ...]) -> tuple[Any, ...]:
        import tensorflow as tf

        features, labels, *rest = element
        classes = _classes(labels)
        known = tf.constant(table, tf.float32)
        inside = tf.logical_and(classes >= 0, classes < len(table))
        weight = tf.gather(known, tf.clip_by_value(classes, 0, len(table) - 1))
        weight = tf.where(inside, weight, 1.0)
        if rest:
            given = tf.cast(rest[0], tf.float32)
            shape = tf.concat([tf.shape(weight), tf.ones([tf.rank(given) - 1], tf.int32)], 0)
            weight = given * (tf.reshape(weight, shape) if given.shape.rank != 1 else weight)
        return features, labels, weight

    return convert


def _table(weights: Any) -> list[float]:
    if not isinstance(weights, Mapping):
        raise ContractError(
            f"get_class_weight returned {weights!r} ({type(weights).__name__}). {_EXAMPLE}"
        )
    table: dict[int, float] = {}
    for key, value in weights.items():
        try:
            number, weight = int(key), float(value)
            if number != float(key) or number < 0 or not math.isfinite(weight) or weight < 0:
                raise ValueError
        except (TypeError, ValueError):
            raise ContractError(
                f"get_class_weight returned {key!r}: {value!r}, which is no class number with a weight. "
                f"{_EXAMPLE}"
            ) from None
        table[number] = weight
    return [table.get(number, 1.0) for number in range(max(table, default=0) + 1)]


def _classes(labels: Any) -> tf.Tensor:
    """The class of each example, of numbers or of one-hot vectors."""
    import tensorflow as tf

    rank = getattr(getattr(labels, "shape", None), "rank", None)
    if rank == 2 and labels.shape[1] not in (1, None):
        return tf.argmax(labels, 1, tf.int32)
    if rank == 1 or (rank == 2 and labels.shape[1] == 1):
        return tf.cast(tf.reshape(labels, [-1]), tf.int32)
    raise ContractError(
        "Class weights need one class a data point: numbers, or one-hot vectors. The labels are "
        f"{labels.dtype.name + ' of shape ' + str(labels.shape) if rank is not None else type(labels).__name__}. "
        "Return None from get_class_weight, and give sample weights instead."
    )
