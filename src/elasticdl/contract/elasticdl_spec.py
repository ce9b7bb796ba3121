"""`ElasticDLSpec`, the base class that users derive from, and its adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import Role, bind, check_params, parameters, takes
from elasticdl.contract.legacy import hand_labels
from elasticdl.contract.loss import LABELS
from elasticdl.contract.mode import Mode
from elasticdl.contract.model import LEARNING_RATE_NAMES, Models
from elasticdl.contract.pieces import Pieces
from elasticdl.errors import ContractError, InvalidValue

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["ElasticDLSpec", "is_spec", "pieces_of_spec"]

_NAMES = {
    "dataset_fn": "create_dataset",
    "loss": "create_loss",
    "optimizer": "create_optimizer",
    "eval_metrics_fn": "create_metrics",
    "callbacks": "create_callbacks",
}


class ElasticDLSpec:
    """Tells ElasticDL how to create the model, optimizer, loss, dataset and metrics.

    Derive from it and write the five methods; `create_metrics` and `create_callbacks` may be left
    out. The constructor receives `context`, a dict of what is known about the worker (or None), and
    the `model_params` as keywords.

    >>> class Line(ElasticDLSpec):
    ...     def create_model(self): return tf.keras.Sequential([tf.keras.layers.Dense(1)])
    ...     def create_optimizer(self, lr=0.1): return tf.keras.optimizers.SGD(lr)
    ...     def create_loss(self, outputs=None, labels=None): return tf.square(outputs - labels)
    ...     def create_dataset(self, dataset, mode): return dataset.map(parse)
    """

    def __init__(self, context: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        if kwargs:
            raise InvalidValue(
                f"{type(self).__name__} takes no parameter {next(iter(kwargs))!r}. Take it in "
                "__init__(self, "
                "context=None, ...) and do not hand it to super().__init__()."
            )
        self._context = context

    def create_model(self) -> keras.Model:
        """The Keras model."""
        raise self._not_written("create_model")

    def create_optimizer(self, lr: float = 0.1) -> keras.optimizers.Optimizer:
        """The optimizer."""
        raise self._not_written("create_optimizer")

    def create_loss(self, outputs: Any = None, labels: Any = None) -> tf.Tensor:
        """The loss of a batch, from the model's outputs and the labels."""
        raise self._not_written("create_loss")

    def create_dataset(self, dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
        """A dataset of (features, labels), or of features alone for prediction."""
        raise self._not_written("create_dataset")

    def create_metrics(
        self,
        mode: Mode = Mode.TRAINING,
        outputs: Any = None,
        labels: Any = None,
        predictions: Any = None,
    ) -> Mapping[str, Any]:
        """The metrics of a mode, by name."""
        return {}

    def _not_written(self, method: str) -> ContractError:
        return ContractError(
            f"{type(self).__name__} has no {method}. Write `def {method}(self, ...)` in the class."
        )


def is_spec(value: Any) -> bool:
    """Whether a class or object is an ElasticDLSpec: ours, or a copy that a user's file carries."""
    cls = value if isinstance(value, type) else type(value)
    return issubclass(cls, ElasticDLSpec) or all(
        callable(getattr(cls, name, None)) for name in ("create_model", "create_loss")
    )


def pieces_of_spec(given: Any, params: Mapping[str, Any], where: str) -> Pieces:
    """The parts of a class derived from ElasticDLSpec, or of an instance of one."""
    spec, left = _instance(given, params, where)
    name = type(spec).__name__
    found = {part: _written(spec, method) for part, method in _NAMES.items()}
    found["eval_metrics_fn"] = _metrics(found["eval_metrics_fn"])
    model = _written(spec, "create_model")
    if model is None:
        raise ContractError(
            f"There is no model: {name} of {where} has no create_model. Add `def "
            "create_model(self): ...` that "
            "returns a tf.keras.Model."
        )
    where = f"the class {name} of {where}"
    return Pieces(
        name=name,
        where=where,
        models=Models(where),
        model=model,
        params=left,
        names=_NAMES,
        **found,
    )


def _instance(given: Any, params: Mapping[str, Any], where: str) -> tuple[Any, dict[str, Any]]:
    """The spec, and the learning rate if one was given: it goes to `create_optimizer` too."""
    rates = {n: v for n, v in params.items() if n in LEARNING_RATE_NAMES}
    optimizer = getattr(given, "create_optimizer", None)
    if not optimizer or not any(takes(optimizer, n, explicitly=True) for n in LEARNING_RATE_NAMES):
        rates = {}
    if not isinstance(given, type):
        if set(params) - set(rates):
            raise InvalidValue(
                f"{where} is an instance of {type(given).__name__}, which takes no model_params, "
                "and "
                f"{', '.join(map(repr, params))} was given. Name the class instead."
            )
        return given, rates
    init = {n: v for n, v in params.items() if n not in rates or takes(given, n)}
    if takes(given, "context"):
        init.setdefault("context", None)
    check_params(f"{given.__name__} of {where}", given, init)
    return given(**init), rates


def _written(spec: Any, method: str) -> Any:
    """The bound method, or None when it is only the base's."""
    bound = getattr(spec, method, None)
    base = getattr(ElasticDLSpec, method, None)
    return None if bound is None or getattr(bound, "__func__", None) is base else bound


def _metrics(create_metrics: Any) -> Any:
    """`create_metrics` as an `eval_metrics_fn`: definitions if it gives them without outputs."""
    if create_metrics is None:
        return None
    bound = bind("create_metrics", create_metrics, _metric_roles())
    if not any(bound.takes(role) for role in ("outputs", "labels", "predictions")):
        return lambda: bound(mode=Mode.EVALUATION)
    if _gives_definitions(create_metrics):
        return lambda: create_metrics(**_mode_of(create_metrics))

    def values(labels: Any, outputs: Any) -> Any:
        labels = hand_labels(create_metrics, labels)
        return bound(mode=Mode.EVALUATION, outputs=outputs, labels=labels, predictions=outputs)

    return values


def _metric_roles() -> tuple[Role, ...]:
    outputs = Role.of("outputs", "output")
    return (Role.of("mode"), outputs, LABELS, Role.of("predictions", "prediction", by_name=True))


def _mode_of(create_metrics: Callable[..., Any]) -> dict[str, Mode]:
    return {"mode": Mode.EVALUATION} if takes(create_metrics, "mode") else {}


def _gives_definitions(create_metrics: Callable[..., Any]) -> bool:
    """Its outputs and labels default to None: called so, a function that computes values fails."""
    import keras

    if any(p.default is p.empty and p.name != "mode" for p in parameters(create_metrics) or ()):
        return False
    try:
        given = create_metrics(**_mode_of(create_metrics))
    except Exception:
        return False
    values = list(given.values()) if isinstance(given, Mapping) else []
    return bool(values) and all(
        isinstance(v, keras.metrics.Metric | Mapping | str) or callable(v) for v in values
    )
