"""The model in training: built, its loss bound, and its whole state by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.contract.spec import Spec
from elasticdl.engine.copies import Copies
from elasticdl.engine.explain import calling_loss, calling_metrics, calling_model
from elasticdl.engine.fused import fuse_normalizations, fuse_update
from elasticdl.engine.inputs import Minibatch, bind_features, split_minibatch
from elasticdl.engine.metrics import CompiledMetrics
from elasticdl.engine.names import name_variables
from elasticdl.errors import ContractError, DataError

if TYPE_CHECKING:
    import keras
    import numpy as np
    import tensorflow as tf

__all__ = ["TrainingModel"]


class TrainingModel:
    """A user's model, built on a first minibatch, with its loss and its optimizer.

    Args:
      spec: what the user wrote.
      element: a first minibatch of real data; a subclassed model has no variables before it sees one.
      trains: whether it needs an optimizer.
      predicts: whether it only predicts: the minibatch is features alone, and there need be no loss.
    """

    def __init__(
        self, spec: Spec, element: Any, *, trains: bool = True, predicts: bool = False
    ) -> None:
        self.spec = spec
        self.model: keras.Model = spec.build_model()
        self._predicts = predicts
        if not predicts:
            _check_step(self.model)
        batch = Minibatch((element, None, None)) if predicts else split_minibatch(element)
        self.bind = bind_features(self.model, batch.features)
        self._optimizer: keras.optimizers.Optimizer | None = (
            spec.make_optimizer() if trains and not predicts and not spec.compiled else None
        )
        self._user_loss = spec.loss if _is_function(spec.loss) and not spec.compiled else None
        self.metrics = CompiledMetrics(self.model) if spec.compiled and not predicts else None
        """Those that the model was compiled with."""
        self._copies: Copies | None = None
        self.warnings: list[str] = []
        """What is suspicious though it works."""
        if spec.compiled and not predicts:
            self._take_compiled(trains)
        elif not predicts:
            self._compile()
        self.check(batch)
        if self._optimizer is not None:
            fuse_normalizations(self.model)

    def _take_compiled(self, trains: bool) -> None:
        """What the model was compiled with stays as it is."""
        if not self.model.compiled:
            raise ContractError(
                f"The model of {self.spec.name} is not compiled. Call `model.compile(optimizer=..., loss=...)` "
                "before it is returned."
            )
        if trains:
            self._optimizer = self.model.optimizer
            self._build_optimizer()

    def _build_optimizer(self) -> None:
        self.optimizer.build(self.model.trainable_variables)
        fuse_update(self.optimizer)

    def _compile(self) -> None:
        """Give Keras the optimizer and, when it is one of its own, the loss."""
        loss = None if self._user_loss is not None else self.spec.loss
        if self._optimizer is not None or loss is not None:
            self.model.compile(optimizer=self._optimizer, loss=loss)
        if self._optimizer is not None:
            # With mixed precision Keras puts one that scales the loss around it.
            self._optimizer = self.model.optimizer
            self._build_optimizer()

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        assert self._optimizer is not None, "made without training"
        return self._optimizer

    def check(self, batch: Minibatch) -> None:
        """Find features, labels and outputs that do not fit each other, and say so."""
        with calling_model(batch.features, own_batches=self.spec.compiled):
            outputs = self.model(self.bind(batch.features), training=False)
        if outputs is None:
            raise ContractError(
                "The model returned nothing (None). End its `call` with a `return`."
            )
        if self._predicts:
            return
        self._check_loss()
        with calling_loss(batch, outputs, own_batches=self.spec.compiled):
            loss = self._loss_of(batch, outputs, training=False)
        if loss.shape.rank != 0:
            raise ContractError(
                "The loss must be one number a minibatch, or one an example; "
                f"it has the shape {loss.shape}."
            )
        if self.metrics is not None:
            with calling_metrics(batch.labels, outputs):
                self.metrics.update(batch, outputs)  # they have variables from now on
            self.metrics.reset()
        self.warnings = _broadcast_warnings(self._user_loss, batch.labels, outputs)

    def _check_loss(self) -> None:
        import keras

        own = type(self.model).compute_loss is not keras.Model.compute_loss
        if self.spec.compiled and self.model.loss is None and not self.model.losses and not own:
            raise ContractError(
                f"The model of {self.spec.name} is compiled without a loss. Give `model.compile` one."
            )

    def loss(self, batch: Minibatch, *, training: bool) -> tuple[tf.Tensor, Any]:
        """The minibatch's loss, regularisation included, and the model's outputs."""
        outputs = self.model(self.bind(batch.features), training=training)
        return self._loss_of(batch, outputs, training=training), outputs

    def _loss_of(self, batch: Minibatch, outputs: Any, *, training: bool) -> tf.Tensor:
        import tensorflow as tf

        if self._user_loss is None:
            loss = self.model.compute_loss(
                x=batch.features,
                y=batch.labels,
                y_pred=outputs,
                sample_weight=batch.weights,
                training=training,
            )
            return tf.convert_to_tensor(loss)
        loss = tf.convert_to_tensor(self._user_loss(batch.labels, outputs, batch.weights))
        if loss.shape.rank != 0:
            loss = tf.reduce_mean(loss)
        if self.model.losses:
            loss = loss + tf.cast(tf.add_n(self.model.losses), loss.dtype)
        return loss

    @property
    def variables(self) -> dict[str, keras.Variable]:
        """Everything that training changes, by a name that is the same in every process."""
        metrics = self.metrics.variables if self.metrics is not None and self._optimizer else ()
        named = {f"metrics/{i}": variable for i, variable in enumerate(metrics)}
        return name_variables(self.model, self._optimizer) | named

    def prepare_save(self) -> None:
        """A `save` will come soon: make memory ready for it, while the training goes on."""
        if self._copies is None:
            self._copies = Copies(self.variables)
        self._copies.prepare()

    def save(self, *, only_model: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """A copy of every variable."""
        if only_model:
            return Copies(self._variables(only_model=True)).take()
        self.prepare_save()
        assert self._copies is not None
        return self._copies.take()

    def _variables(self, *, only_model: bool) -> dict[str, keras.Variable]:
        return {
            name: variable
            for name, variable in self.variables.items()
            if not only_model or name.startswith("model/")
        }

    def load(self, values: Mapping[str, np.ndarray[Any, Any]], *, only_model: bool = False) -> None:
        """Set every variable. Names and shapes must agree; says which do not."""
        mine = self._variables(only_model=only_model)
        theirs = {n: v for n, v in values.items() if not only_model or n.startswith("model/")}
        faults = [f"{n} is missing" for n in mine if n not in theirs]
        faults += [f"{n} is not in this model" for n in theirs if n not in mine]
        faults += [
            f"{n} has the shape {theirs[n].shape} instead of {tuple(v.shape)}"
            for n, v in mine.items()
            if n in theirs and tuple(theirs[n].shape) != tuple(v.shape)
        ]
        if faults:
            shown = "; ".join(faults[:8]) + ("; ..." if len(faults) > 8 else "")
            raise DataError(
                f"The saved weights are of another model: {shown}. "
                "Use the model definition and parameters that they were trained with."
            )
        for name, variable in mine.items():
            variable.assign(theirs[name])


def _is_function(loss: Any) -> bool:
    import keras

    return callable(loss) and not isinstance(loss, keras.losses.Loss)


def _check_step(model: keras.Model) -> None:
    """A step of the model's own would be left out without a word."""
    import keras

    if type(model).train_step is not keras.Model.train_step:
        raise ContractError(
            f"{type(model).__name__} has a train_step of its own. ElasticDL computes the step itself, "
            "so that it can account for every record: say what is minimised in the loss instead."
        )


def _broadcast_warnings(user_loss: Any, labels: Any, outputs: Any) -> list[str]:
    """Labels (n,) and outputs (n, 1) subtract to (n, n), which trains something else."""
    ranks = [getattr(getattr(t, "shape", None), "rank", None) for t in (labels, outputs)]
    if user_loss is None or ranks != [1, 2] or outputs.shape[1] != 1:
        return []
    return [
        f"The labels have the shape {tuple(labels.shape)} and the outputs {tuple(outputs.shape)}: a "
        "loss that subtracts them compares each with every other. Give the labels the shape [1] in "
        "the dataset function, or squeeze the outputs in the loss."
    ]
