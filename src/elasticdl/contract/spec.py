"""The one internal form of what a user writes: every adapter makes a `Spec`, the engine sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

    from elasticdl.contract.mode import Mode

__all__ = ["Batches", "LossFn", "MetricDef", "Spec", "ValuesFn"]

Tensors = Any
"""A tensor, or a dict, tuple or list of them."""


class LossFn(Protocol):
    """A user's loss with its arguments in one order, whatever order it was written in."""

    def __call__(
        self, labels: Tensors, outputs: Tensors, sample_weight: Tensors | None
    ) -> tf.Tensor: ...


class ValuesFn(Protocol):
    """Metrics as values of some predictions: `eval_metrics_fn(predictions, labels)`."""

    def __call__(self, labels: Tensors, outputs: Tensors) -> Mapping[str, Any]: ...


class Batches(Protocol):
    """The user's dataset function with the batching that belongs to its form.

    Training and evaluation yield `(features, labels)` or `(features, labels, sample_weight)`;
    prediction yields features alone. With `ragged`, records of varying shape are batched as
    RaggedTensors.
    """

    def __call__(
        self,
        records: tf.data.Dataset,
        mode: Mode,
        metadata: Any,
        batch_size: int,
        *,
        ragged: bool = False,
    ) -> tf.data.Dataset: ...


@dataclass(frozen=True)
class MetricDef:
    """One metric of `eval_metrics_fn()`.

    `metric` is a Keras metric (fresh, its state unused) or `fn(labels, predictions)` that returns a
    value an example, or one value. `output` names the model output and the label that it looks at,
    when the user nested the metrics by output.
    """

    name: str
    metric: keras.metrics.Metric | Callable[[Tensors, Tensors], Any]
    output: str | None = None


@dataclass(frozen=True)
class Spec:
    """What the engine needs: how to build each part. Nothing is built before it is asked for."""

    name: str
    build_model: Callable[[], keras.Model]
    make_optimizer: Callable[[], keras.optimizers.Optimizer]
    loss: LossFn | Any
    """A `LossFn`, or what Keras' `compile(loss=...)` takes (a name, a Loss, a dict by output)."""
    batches: Batches
    metrics: Callable[[], Sequence[MetricDef]] = field(default=lambda: ())
    metric_values: ValuesFn | None = None
    callbacks: Callable[[], Sequence[keras.callbacks.Callback]] = field(default=lambda: ())
    data_reader: Callable[..., Any] | None = None
    """`custom_data_reader(data_origin, records_per_task=None, **kwargs)`."""
    prediction_processor: Callable[[], Any] | None = None
    """Makes an object with `process(predictions, worker_id)`."""
    prepare_data: Callable[..., Any] | None = None
    """`prepare_data_for_a_single_file`, as the user wrote it."""
    files: Sequence[str] = ()
    """The zoo's source files that were imported, relative to the zoo; grows when code imports later."""
    zoo: Path | None = None
    """The directory of the zoo, when something was named in one."""
    compiled: bool = False
    """Whether `build_model` gives a compiled model: its own optimizer, loss and metrics are used."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the parts that were found are called: {"loss": "loss", "dataset_fn": "feed"}."""
    accepted: frozenset[str] = frozenset()
    """Of the keywords that were offered to the model, those that it names among its parameters."""
