"""Classifiers: they predict the probability of each class from a matrix of numbers."""

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
from scores import ClassScore, PositiveAUC

from elasticdl.errors import InvalidValue


class _Classifier(keras.Model):
    """What all of them share: the loss, the optimizer and the metrics."""

    unlisted = ("num_classes", "n_classes", *UNLISTED)

    def __init__(self, params: dict[str, Any], n_classes: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        number = params["num_classes"]
        if not isinstance(number, int) or number < 2:
            raise InvalidValue(f"Invalid num_classes {number!r}: give a whole number from 2 on.")
        if n_classes not in (None, number):  # SQLFlow's name; the label itself says it
            raise InvalidValue(
                f"Invalid n_classes {n_classes!r}: the label has {number} classes. Leave n_classes out."
            )
        self.params = params
        self.softmax = keras.layers.Softmax(name="probabilities")

    def get_config(self) -> dict[str, Any]:
        """What Keras needs to load a saved model."""
        return {**super().get_config(), **self.params}

    @staticmethod
    def default_loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
        """Cross-entropy, averaged over the minibatch."""
        return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, output))

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """The one that was asked for."""
        return make_optimizer(self.params)

    def default_metrics(self) -> dict[str, keras.metrics.Metric]:
        """Of two classes, what is said of the second; of more, the average over them."""
        number = self.params["num_classes"]
        metrics = {"accuracy": keras.metrics.SparseCategoricalAccuracy()}
        if number == 2:
            metrics["auc"] = PositiveAUC(name="auc")
        return {
            **metrics,
            **{kind: ClassScore(kind, number) for kind in ("precision", "recall", "f1")},
        }


class DNN(_Classifier):
    """A dense network."""

    is_wide = False

    def __init__(
        self,
        hidden_units: Sequence[int] = (64, 32),
        num_classes: int = 2,
        learning_rate: float = 0.01,
        dropout: float = 0.0,
        activation: str = ACTIVATION,
        batch_norm: bool = False,
        l2: float = 0.0,
        optimizer: str = "adam",
        n_classes: int | None = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ) -> None:
        network = check_network(hidden_units, dropout, activation, l2)
        learning = check_optimizer(learning_rate, optimizer)
        params = {**network, **learning, "batch_norm": batch_norm, "num_classes": num_classes}
        super().__init__(params, n_classes, name=name, trainable=trainable, dtype=dtype)
        self.hidden = hidden_layers(network, batch_norm)
        self.scores = dense(num_classes, 0.0, "scores")
        self.wide = dense(num_classes, l2, "wide") if self.is_wide else None

    def call(self, inputs: Any, training: bool = False) -> Any:
        """A matrix in, a probability a class out."""
        x = one_matrix(inputs)
        for layer in self.hidden:
            x = layer(x, training=training)
        return self.softmax(self.scores(x))


class Linear(_Classifier):
    """A weight for each input and class."""

    def __init__(
        self,
        num_classes: int = 2,
        learning_rate: float = 0.01,
        l2: float = 0.0,
        optimizer: str = "adam",
        n_classes: int | None = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ) -> None:
        check_network((), 0.0, ACTIVATION, l2)
        params = {**check_optimizer(learning_rate, optimizer), "l2": l2, "num_classes": num_classes}
        super().__init__(params, n_classes, name=name, trainable=trainable, dtype=dtype)
        self.scores = dense(num_classes, l2, "scores")

    def call(self, inputs: Any) -> Any:
        """A matrix in, a probability a class out."""
        return self.softmax(self.scores(one_matrix(inputs)))


class WideAndDeep(DNN):
    """A linear model and a dense network side by side, of the inputs `linear` and `dnn`."""

    is_wide = True

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Two matrices in, or one for both parts; a probability a class out."""
        linear, x = wide_and_deep(inputs)
        for layer in self.hidden:
            x = layer(x, training=training)
        return self.softmax(self.scores(x) + self.wide(linear))
