"""Metrics that give the same number whatever the batch size.

A Keras metric is updated a minibatch at a time, inside the graph. A function of (labels, predictions)
is called on *blocks*: as many examples as fit into a fixed number of bytes, collected over minibatches, so
what it is called with does not depend on the batch size. A validation set within one block, which is nearly
every one, is seen whole; over several blocks the values are averaged by examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.contract.spec import MetricDef, Spec
from elasticdl.engine.inputs import num_examples
from elasticdl.errors import ContractError, UnknownName, nearest

if TYPE_CHECKING:
    import keras

    from elasticdl.engine.inputs import Minibatch

__all__ = ["BlockMetrics", "CompiledMetrics", "KerasMetrics"]

BLOCK_BYTES = 64 << 20


class KerasMetrics:
    """The user's Keras metrics, each looking at its own output."""

    def __init__(self, spec: Spec) -> None:
        import keras

        self._defs: list[Any] = [
            m for m in spec.metrics() if isinstance(m.metric, keras.metrics.Metric)
        ]

    @property
    def names(self) -> list[str]:
        return [metric.name for metric in self._defs]

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [metric.metric for metric in self._defs]

    def update(self, labels: Any, outputs: Any) -> None:
        for metric in self._defs:
            metric.metric.update_state(_pick(metric, labels), _pick(metric, outputs))

    def result(self) -> dict[str, float]:
        """Without those that say of themselves that they are not defined on what they saw."""
        return {
            m.name: _number(m.name, m.metric.result())
            for m in self._defs
            if getattr(m.metric, "is_defined", True)
        }

    def reset(self) -> None:
        for metric in self._defs:
            metric.metric.reset_state()


class CompiledMetrics:
    """The metrics that a model was compiled with, weighted and unweighted, by the names that `fit` logs.

    There is one set of them in a model: it serves the training or an evaluation, one at a time.
    """

    def __init__(self, model: keras.Model) -> None:
        self._model = model

    @property
    def names(self) -> list[str]:
        return list(self.result())

    @property
    def variables(self) -> list[keras.Variable]:
        return list(self._model.metrics_variables)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """One by one, those that `compile` was given too."""
        return [m for metric in self._model.metrics for m in (_members(metric) or [metric])]

    @property
    def reads_features(self) -> bool:
        """Whether the model's own `compute_metrics` might look at them. That of Keras does not."""
        import keras

        return type(self._model).compute_metrics is not keras.Model.compute_metrics

    def update(self, batch: Minibatch, outputs: Any) -> None:
        self._model.compute_metrics(batch.features, batch.labels, outputs, batch.weights)

    def result(self) -> dict[str, float]:
        """Without the loss, which is summed where it is computed."""
        logs = self._model.get_metrics_result()
        return {name: _number(name, value) for name, value in logs.items() if name != "loss"}

    def reset(self) -> None:
        self._model.reset_metrics()


class BlockMetrics:
    """The user's metric functions, called on blocks of collected examples."""

    def __init__(self, spec: Spec) -> None:
        import keras

        self._functions = [
            m for m in spec.metrics() if not isinstance(m.metric, keras.metrics.Metric)
        ]
        self._values = spec.metric_values
        self.is_needed = bool(self._functions) or self._values is not None
        self.reset()

    def names(self, labels: Any, outputs: Any) -> list[str]:
        values = self._values(labels, outputs) if self._values is not None else ()
        return [*(metric.name for metric in self._functions), *values]

    def reset(self) -> None:
        self._parts: list[tuple[Any, Any]] = []
        self._examples_in_parts = 0
        self._sums: dict[str, float] = {}
        self._examples = 0

    def update(self, labels: Any, outputs: Any) -> None:
        """Collect a minibatch; cut it where a block is full."""
        block = max(1, BLOCK_BYTES // max(1, _bytes_per_example((labels, outputs))))
        start, count = 0, int(num_examples(outputs))
        while start < count:
            end = min(count, start + block - self._examples_in_parts)
            self._parts.append(_rows((labels, outputs), start, end))
            self._examples_in_parts += end - start
            start = end
            if self._examples_in_parts == block:
                self._close_block()

    def result(self) -> dict[str, float]:
        self._close_block()
        return {name: total / self._examples for name, total in self._sums.items()}

    def _close_block(self) -> None:
        if not self._parts:
            return
        labels, outputs = _join(self._parts)
        values: dict[str, Any] = {
            m.name: m.metric(_pick(m, labels), _pick(m, outputs)) for m in self._functions
        }
        if self._values is not None:
            values.update(self._values(labels, outputs))
        for name, value in values.items():
            total = _number(name, value) * self._examples_in_parts
            self._sums[name] = self._sums.get(name, 0.0) + total
        self._examples += self._examples_in_parts
        self._parts, self._examples_in_parts = [], 0


def _members(metric: keras.metrics.Metric) -> list[keras.metrics.Metric]:
    """Of the one that Keras makes of all those that a model is compiled with."""
    by_keras = type(metric).__module__.partition(".")[0] == "keras"
    return list(getattr(metric, "metrics", ())) if by_keras else []


def _pick(metric: MetricDef, tensors: Any) -> Any:
    """The output or label that a metric nested by output name looks at."""
    if metric.output is None:
        return tensors
    if isinstance(tensors, Mapping):
        if metric.output not in tensors:
            raise UnknownName(
                f"The metric {metric.name!r} is for the output {metric.output!r}, which does not exist. "
                f"{nearest(metric.output, tensors)}"
            )
        return tensors[metric.output]
    return tensors


def _number(name: str, value: Any) -> float:
    import numpy as np

    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.number) and array.dtype != bool:
        raise ContractError(f"The metric {name!r} must be a number; it is {value!r}.")
    return float(array.astype(np.float64).mean())


def _rows(tensors: Any, start: int, end: int) -> Any:
    import tensorflow as tf

    def cut(tensor: Any) -> Any:
        if isinstance(tensor, tf.SparseTensor):
            tensor = tf.RaggedTensor.from_sparse(tensor)
        return tensor[start:end]

    return tf.nest.map_structure(cut, tensors)


def _join(parts: list[Any]) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(lambda *tensors: tf.concat(tensors, axis=0), *parts)


def _bytes_per_example(tensors: Any) -> int:
    import tensorflow as tf

    total = 0
    for tensor in tf.nest.flatten(tensors):
        shape = getattr(tensor, "shape", ())
        size = 1
        for dimension in list(shape)[1:]:
            size *= dimension or 1
        total += size * max(1, tensor.dtype.size)
    return total
