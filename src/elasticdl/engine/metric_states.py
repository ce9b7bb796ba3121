"""The state of Keras metrics, taken out of one process and summed up in another.

All that Keras has add to their variables a minibatch at a time, so states of several processes are summed. What
the user's own `update_state` does to its variables (a maximum, a moving average) nobody knows: such a metric is
updated again on the minibatches themselves, unless it says `is_additive = True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import keras

__all__ = ["States", "is_additive", "set_sums", "take_states"]

States = list[list[np.ndarray[Any, Any]]]
"""By metric, its variables; none for a metric that is not additive."""


def is_additive(metric: keras.metrics.Metric) -> bool:
    """Whether the states of two processes can be summed."""
    said = getattr(metric, "is_additive", None)
    if said is not None:
        return bool(said)
    by_keras = type(metric).update_state.__module__.partition(".")[0] == "keras"
    return by_keras and all(variable.aggregation == "sum" for variable in metric.variables)


def take_states(metrics: Sequence[keras.metrics.Metric]) -> States:
    """A copy of what additive metrics have counted."""
    return [
        [np.array(variable.numpy()) for variable in metric.variables] if is_additive(metric) else []
        for metric in metrics
    ]


def set_sums(metrics: Sequence[keras.metrics.Metric], states: Sequence[States]) -> None:
    """Let additive metrics have counted what all of `states` have. The others are left alone."""
    for number, metric in enumerate(metrics):
        variables = metric.variables
        # Shorter ones are of processes where the metric saw no minibatch, and so are not all made.
        found = [of_one[number] for of_one in states if len(of_one[number]) == len(variables)]
        for variable, values in zip(variables, zip(*found, strict=True), strict=bool(found)):
            variable.assign(_sum(values))


def _sum(values: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """In the type of the values, but added up in the widest one of its kind."""
    kind = values[0].dtype
    wide = np.float64 if kind.kind in "fV" else kind  # bfloat16 is a V
    total: np.ndarray[Any, Any] = np.sum([value.astype(wide) for value in values], axis=0)
    return total.astype(kind)
