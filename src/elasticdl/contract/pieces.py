"""The parts that a form found, before they are bound, and the Spec that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import describe
from elasticdl.contract.dataset import PlainBatches, bind_dataset
from elasticdl.contract.first import Columns, first_batches, is_first_input
from elasticdl.contract.loss import bind_loss
from elasticdl.contract.metrics import bind_metrics
from elasticdl.contract.model import Models, model_factory, split_params
from elasticdl.contract.optimizer import bind_optimizer
from elasticdl.contract.spec import Batches, Spec
from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import keras

__all__ = ["OVERRIDES", "Pieces", "assemble", "callbacks_maker"]

OVERRIDES = (
    "dataset_fn",
    "loss",
    "optimizer",
    "eval_metrics_fn",
    "callbacks",
    "custom_data_reader",
    "prediction_outputs_processor",
)

_EXAMPLES = {
    "loss": "def loss(labels, output): return keras.losses.mean_squared_error(labels, output)",
    "optimizer": "def optimizer(lr=0.1): return tf.keras.optimizers.SGD(lr)",
}


@dataclass(frozen=True)
class Pieces:
    """What a user's file, class or object has; None for what it has not."""

    name: str
    where: str
    """Where the parts were looked for, in words."""
    models: Models
    model: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    dataset_fn: Any = None
    columns: Columns | None = None
    loss: Any = None
    optimizer: Any = None
    eval_metrics_fn: Any = None
    callbacks: Any = None
    custom_data_reader: Any = None
    prediction_outputs_processor: Any = None
    prepare_data: Any = None
    names: Mapping[str, str] = field(default_factory=dict)
    """What the form calls a part, where that differs: {"loss": "create_loss"}."""


def assemble(pieces: Pieces, files: Sequence[str], *, training: bool = True) -> Spec:
    """The Spec. Without `training`, a loss and an optimizer may be missing until they are used."""
    for_model, for_optimizer = split_params(pieces.params, pieces.model, pieces.optimizer)
    pieces.models.make = model_factory(pieces.model, for_model, pieces.where)
    metrics, metric_values = bind_metrics(pieces.eval_metrics_fn)
    loss, optimizer = (_required(pieces, part, training) for part in ("loss", "optimizer"))
    return Spec(
        name=pieces.name,
        build_model=pieces.models.build,
        make_optimizer=bind_optimizer(optimizer, for_optimizer),
        loss=bind_loss(loss),
        batches=_batches(pieces),
        metrics=metrics,
        metric_values=metric_values,
        callbacks=callbacks_maker(pieces.callbacks),
        data_reader=pieces.custom_data_reader,
        prediction_processor=_processor(pieces.prediction_outputs_processor),
        prepare_data=pieces.prepare_data,
        files=files,
        names={
            part: _called(value)
            for part in ("dataset_fn", "loss", "optimizer")
            if (value := getattr(pieces, part)) is not None
        },
    )


def _called(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):  # a loss for each output
        return ", ".join(f"{name}: {_called(one)}" for name, one in part.items())
    if isinstance(part, list | tuple):
        return ", ".join(map(_called, part))
    return str(getattr(part, "__name__", None) or type(part).__name__)


def _required(pieces: Pieces, part: str, training: bool) -> Any:
    value = getattr(pieces, part)
    if value is not None:
        return value
    name = pieces.names.get(part, part)
    error = ContractError(
        f"There is no {part}: looked for {name!r} in {pieces.where}. Add one, for example "
        f"`{_EXAMPLES[part]}`, or give one with {part}=."
    )
    if training:
        raise error

    def refuse(*_: Any) -> Any:
        raise error

    return refuse


def _batches(pieces: Pieces) -> Batches:
    fn = pieces.dataset_fn
    if fn is None:
        return PlainBatches()
    if callable(fn) and is_first_input(fn):
        return first_batches(fn, pieces.columns, pieces.models.look, pieces.where)
    return bind_dataset(fn)


def callbacks_maker(
    given: Any, name: str = "callbacks"
) -> Callable[[], Sequence[keras.callbacks.Callback]]:
    def make() -> Sequence[keras.callbacks.Callback]:
        import keras

        made = given() if callable(given) else given
        if made is None or isinstance(made, keras.callbacks.Callback):
            return [] if made is None else [made]
        found = list(made) if isinstance(made, Iterable) else [made]
        for callback in found:
            if not isinstance(callback, keras.callbacks.Callback):
                raise ContractError(
                    f"{name} gave {callback!r} ({type(callback).__name__}). Return a list of "
                    "tf.keras.callbacks.Callback objects."
                )
        return found

    return make


def _processor(given: Any) -> Callable[[], Any] | None:
    if given is None:
        return None
    if not isinstance(given, type) and hasattr(given, "process"):
        return lambda: given
    if not callable(given):
        raise ContractError(
            f"The prediction_outputs_processor is {given!r}. Give a class with a method "
            "process(self, predictions, worker_id)."
        )

    def make() -> Any:
        processor = given()
        if not callable(getattr(processor, "process", None)):
            raise ContractError(
                f"{describe('prediction_outputs_processor', given)} made {processor!r}, which has "
                "no method "
                "process(predictions, worker_id)."
            )
        return processor

    return make
