"""`classifier.DNN`: predicts a class from a table of numbers.

Each record is a row of strings: numeric columns and, but for prediction, the class as the last,
a number from 0 to `num_classes - 1`.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from elasticdl import Mode


class DNN(keras.Model):
    """A dense network. `--params="hidden_units=[64, 32], num_classes=3"` sets it up."""

    def __init__(
        self,
        hidden_units: Sequence[int] = (64, 32),
        num_classes: int = 2,
        learning_rate: float = 0.01,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.params = {
            "hidden_units": list(hidden_units),
            "num_classes": num_classes,
            "learning_rate": learning_rate,
        }
        # Columns come in any unit; without this the largest one would drown the others.
        self.scale = keras.layers.BatchNormalization(momentum=0.9, center=False, scale=False)
        self.hidden = [keras.layers.Dense(n, activation="relu") for n in hidden_units]
        self.probabilities = keras.layers.Dense(num_classes, activation="softmax")

    def call(self, columns: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Columns in, a probability a class out."""
        x = self.scale(columns, training=training)
        for layer in self.hidden:
            x = layer(x)
        return self.probabilities(x)

    def get_config(self) -> dict[str, Any]:
        """What Keras needs to load a saved model."""
        return {**super().get_config(), **self.params}

    @staticmethod
    def default_input(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
        """Rows to pairs of columns and class; to columns alone for prediction."""
        dataset = dataset.map(tf.strings.to_number)
        if mode == Mode.PREDICTION:
            return dataset
        dataset = dataset.map(lambda row: (row[:-1], tf.cast(row[-1], tf.int32)))
        return dataset.shuffle(4096) if mode == Mode.TRAINING else dataset

    @staticmethod
    def default_loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
        """Cross-entropy, averaged over the minibatch."""
        return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, output))

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Adam at the rate that the model was given."""
        return keras.optimizers.Adam(self.params["learning_rate"])

    def default_metrics(self) -> dict[str, keras.metrics.Metric]:
        """What an evaluation reports."""
        return {"accuracy": keras.metrics.SparseCategoricalAccuracy()}
