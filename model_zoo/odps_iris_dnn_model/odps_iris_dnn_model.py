"""A dense network for Fisher's irises, from a table: each record is a row of strings.

The columns are sepal length and width, petal length and width, and the variety by its name.
"""

import keras
import tensorflow as tf

from elasticdl import Mode

VARIETIES = ["Setosa", "Versicolor", "Virginica"]


def custom_model() -> keras.Model:
    """Four measures in, three logits out."""
    measures = keras.Input((4,), name="measures")
    x = keras.layers.Dense(16, activation="relu")(measures)
    x = keras.layers.Dense(16, activation="relu")(x)
    logits = keras.layers.Dense(len(VARIETIES))(x)
    return keras.Model(measures, logits, name="iris")


def dataset_fn(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
    """Rows to pairs of measures and label; to measures for prediction, with or without variety."""

    def parse(row: tf.Tensor) -> tuple | dict:
        features = {"measures": tf.strings.to_number(row[:4])}
        if mode == Mode.PREDICTION:
            return features
        known = tf.where(row[4] == tf.constant(VARIETIES))
        tf.debugging.assert_equal(tf.size(known), 1, f"The variety is none of {VARIETIES}.")
        return features, known[0, 0]

    dataset = dataset.map(parse)
    return dataset.shuffle(1024) if mode == Mode.TRAINING else dataset


def loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, averaged over the minibatch."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)
    )


def optimizer(lr: float = 0.02) -> keras.optimizers.Optimizer:
    """Adam, at a high rate: there are three minibatches in an epoch."""
    return keras.optimizers.Adam(lr)


def eval_metrics_fn() -> dict[str, keras.metrics.Metric]:
    """What an evaluation reports."""
    return {"accuracy": keras.metrics.SparseCategoricalAccuracy()}
