"""Regressors: they predict a number from a matrix of numbers.

Labels come in any unit. The output is scaled by the label's mean and deviation, and the loss is in units of the
deviation: 1 is as good as always predicting the mean. Of labels far from zero, such as times, the output is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
from networks import (
    ACTIVATION,
    UNLISTED,
    check_network,
    check_optimizer,
    dense,
    hidden_layers,
    make_optimizer,
    one_matrix,
    wide_and_deep,
)
from scores import CentredR2

from elasticdl.errors import InvalidValue


class _Regressor(keras.Model):
    """What all of them share: the scale, the loss, the optimizer and the metrics."""

    unlisted = ("label_mean", "label_std", "label_dtype", *UNLISTED)

    def __init__(self, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not params["label_std"] > 0:
            raise InvalidValue(
                f"Invalid label_std {params['label_std']!r}: give a positive number."
            )
        self.params = params

    def scaled(self, output: Any) -> Any:
        """In the unit of the label."""
        output = keras.ops.cast(output, self.params["label_dtype"])
        return output * self.params["label_std"] + self.params["label_mean"]

    def get_config(self) -> dict[str, Any]:
        """What Keras needs to load a saved model."""
        return {**super().get_config(), **self.params}

    def default_loss(self, labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
        """Squared error in units of the label's deviation."""
        error = (tf.cast(labels, output.dtype) - output) / self.params["label_std"]
        return tf.cast(tf.reduce_mean(tf.square(error)), tf.float32)

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """The one that was asked for."""
        return make_optimizer(self.params)

    def default_metrics(self) -> dict[str, keras.metrics.Metric]:
        """In the unit of the label."""
        dtype = self.params["label_dtype"]
        return {
            "mse": keras.metrics.MeanSquaredError(dtype=dtype),
            "mae": keras.metrics.MeanAbsoluteError(dtype=dtype),
            "rmse": keras.metrics.RootMeanSquaredError(dtype=dtype),
            "r2": CentredR2(self.params["label_mean"], self.params["label_std"]),
        }


class DNN(_Regressor):
    """A dense network."""

    is_wide = False

    def __init__(
        self,
        hidden_units: Sequence[int] = (64, 32),
        learning_rate: float = 0.01,
        dropout: float = 0.0,
        activation: str = ACTIVATION,
        batch_norm: bool = False,
        l2: float = 0.0,
        optimizer: str = "adam",
        label_mean: float = 0.0,
        label_std: float = 1.0,
        label_dtype: str = "float32",
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ) -> None:
        network = check_network(hidden_units, dropout, activation, l2)
        learning = check_optimizer(learning_rate, optimizer)
        params = {**network, **learning, "batch_norm": batch_norm}
        params.update(label_mean=label_mean, label_std=label_std, label_dtype=label_dtype)
        super().__init__(params, name=name, trainable=trainable, dtype=dtype)
        self.hidden = hidden_layers(network, batch_norm)
        self.number = dense(1, 0.0, "number")
        self.wide = dense(1, l2, "wide") if self.is_wide else None

    def call(self, inputs: Any, training: bool = False) -> Any:
        """A matrix in, one number a row out."""
        x = one_matrix(inputs)
        for layer in self.hidden:
            x = layer(x, training=training)
        return self.scaled(self.number(x))


class Linear(_Regressor):
    """A weight for each input."""

    def __init__(
        self,
        learning_rate: float = 0.01,
        l2: float = 0.0,
        optimizer: str = "adam",
        label_mean: float = 0.0,
        label_std: float = 1.0,
        label_dtype: str = "float32",
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ) -> None:
        check_network((), 0.0, ACTIVATION, l2)
        params = {**check_optimizer(learning_rate, optimizer), "l2": l2}
        params.update(label_mean=label_mean, label_std=label_std, label_dtype=label_dtype)
        super().__init__(params, name=name, trainable=trainable, dtype=dtype)
        self.number = dense(1, l2, "number")

    def call(self, inputs: Any) -> Any:
        """A matrix in, one number a row out."""
        return self.scaled(self.number(one_matrix(inputs)))


class WideAndDeep(DNN):
    """A linear model and a dense network side by side, of the inputs `linear` and `dnn`."""

    is_wide = True

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Two matrices in, or one for both parts; one number a row out."""
        linear, x = wide_and_deep(inputs)
        for layer in self.hidden:
            x = layer(x, training=training)
        return self.scaled(self.number(x) + self.wide(linear))
