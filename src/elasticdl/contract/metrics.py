"""A user's metrics: values of predictions and labels, or definitions, flat or nested by output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import Bound, bind, describe
from elasticdl.contract.keras_names import keras_names
from elasticdl.contract.legacy import hand_labels
from elasticdl.contract.loss import LABELS, OUTPUTS
from elasticdl.contract.spec import MetricDef, Tensors, ValuesFn
from elasticdl.errors import ContractError, UnknownName, nearest

if TYPE_CHECKING:
    import keras

__all__ = ["bind_metrics", "metric_defs"]

Definitions = Callable[[], Sequence[MetricDef]]
_EXAMPLE = 'for example {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}'


def bind_metrics(eval_metrics_fn: Any) -> tuple[Definitions, ValuesFn | None]:
    """The two forms of metrics, of which a user's function has one."""
    if eval_metrics_fn is None:
        return (lambda: ()), None
    if not callable(eval_metrics_fn):
        return (lambda: metric_defs(eval_metrics_fn)), None
    bound = bind("eval_metrics_fn", eval_metrics_fn, (LABELS, OUTPUTS))
    if not bound.takes("labels") and not bound.takes("outputs"):
        return (lambda: metric_defs(eval_metrics_fn())), None
    return (lambda: ()), _values_of(bound)


def _values_of(bound: Bound) -> ValuesFn:
    fn = bound.fn

    def metric_values(labels: Tensors, outputs: Tensors) -> Mapping[str, Any]:
        values = bound(labels=hand_labels(fn, labels), outputs=outputs)
        if not isinstance(values, Mapping):
            raise ContractError(
                f"{describe('eval_metrics_fn', fn)} returned {type(values).__name__}. Return a "
                "dict of the "
                "metrics' names and values."
            )
        return values

    return metric_values


def metric_defs(given: Any) -> list[MetricDef]:
    """Definitions of what `eval_metrics_fn()` returned."""
    if isinstance(given, Mapping):
        return list(_of_mapping(given))
    if isinstance(given, list | tuple):
        return [MetricDef(_name_of(m), _metric(_name_of(m), m)) for m in given]
    raise ContractError(f"eval_metrics_fn gave {given!r}. Return a dict of metrics, {_EXAMPLE}.")


def _of_mapping(given: Mapping[str, Any]) -> Iterator[MetricDef]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            for inner, metric in value.items():
                yield MetricDef(f"{name}_{inner}", _metric(inner, metric), output=name)
        else:
            yield MetricDef(name, _metric(name, value))


def _name_of(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def _metric(name: str, value: Any) -> keras.metrics.Metric | Callable[[Tensors, Tensors], Any]:
    import keras

    if isinstance(value, keras.metrics.Metric):
        return type(value).from_config(value.get_config()) if _is_used(value) else value
    if isinstance(value, type) and issubclass(value, keras.metrics.Metric):
        return value()
    if isinstance(value, str):
        return _named(value)
    if callable(value):
        return _function(name, value)
    raise ContractError(
        f"The metric {name!r} is {value!r} ({type(value).__name__}). Give a Keras metric, its "
        "name, or a "
        f"function of (labels, predictions), {_EXAMPLE}."
    )


def _is_used(metric: keras.metrics.Metric) -> bool:
    import numpy as np

    return any(np.any(v.numpy()) for v in metric.variables)


def _function(name: str, fn: Callable[..., Any]) -> Callable[[Tensors, Tensors], Any]:
    bound = bind(f"metric {name!r}", fn, (LABELS, OUTPUTS))

    def metric(labels: Tensors, predictions: Tensors) -> Any:
        return bound(labels=hand_labels(fn, labels), outputs=predictions)

    metric.__name__ = name
    return metric


def _named(name: str) -> keras.metrics.Metric | Callable[[Tensors, Tensors], Any]:
    import keras

    if name in ("accuracy", "acc"):
        return _accuracy
    try:
        return keras.metrics.get(name)
    except ValueError:
        known = nearest(name, [*keras_names("metrics"), "accuracy"])
        raise UnknownName(f"Keras has no metric {name!r}. {known}") from None


def _accuracy(labels: Tensors, predictions: Tensors) -> Any:
    """Keras' "accuracy", which depends on shapes: of one number, one-hot rows or class numbers."""
    import keras
    import tensorflow as tf

    labels, predictions = tf.convert_to_tensor(labels), tf.convert_to_tensor(predictions)
    classes = predictions.shape[-1] if predictions.shape.rank != 1 else 1
    if classes == 1:
        shaped = tf.reshape(labels, tf.shape(predictions))
        return keras.metrics.binary_accuracy(shaped, predictions)
    if labels.shape.rank == predictions.shape.rank and labels.shape[-1] == classes:
        return keras.metrics.categorical_accuracy(labels, predictions)
    flat = tf.reshape(labels, tf.shape(predictions)[:-1])
    return keras.metrics.sparse_categorical_accuracy(flat, predictions)
