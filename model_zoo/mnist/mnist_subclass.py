"""The network of `mnist_functional.py` as a subclass of `keras.Model`.

A record is a `tf.train.Example`: `image` holds the 784 pixels as bytes, `label` the digit.
"""

from typing import Any

import keras
import tensorflow as tf

from elasticdl import Mode


class MnistModel(keras.Model):
    """Image in, ten logits out."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # Keras passes its own here when it loads a saved model
        self.reshape = keras.layers.Reshape((28, 28, 1))
        self.conv1 = keras.layers.Conv2D(32, 3, activation="relu")
        self.conv2 = keras.layers.Conv2D(64, 3, activation="relu")
        self.norm = keras.layers.BatchNormalization(momentum=0.9)
        self.pool = keras.layers.MaxPooling2D(2)
        self.dropout = keras.layers.Dropout(0.25)
        self.flatten = keras.layers.Flatten()
        self.logits = keras.layers.Dense(10)

    def call(self, image: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Keras hands `training` on to the layers that behave differently there."""
        x = self.conv2(self.conv1(self.reshape(image)))
        x = self.pool(self.norm(x, training=training))
        x = self.dropout(x, training=training)
        return self.logits(self.flatten(x))


def dataset_fn(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
    """Records to pairs of image and label; to images alone for prediction."""
    description = {"image": tf.io.FixedLenFeature([], tf.string)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([], tf.int64)

    def parse(record: tf.Tensor) -> tuple | tf.Tensor:
        example = tf.io.parse_single_example(record, description)
        pixels = tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), (28, 28))
        image = tf.cast(pixels, tf.float32) / 255
        return image if mode == Mode.PREDICTION else (image, example["label"])

    dataset = dataset.map(parse)
    return dataset.shuffle(1024) if mode == Mode.TRAINING else dataset


def loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, averaged over the minibatch."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)
    )


def optimizer(lr: float = 0.002) -> keras.optimizers.Optimizer:
    """Adam; its rate is the one to tune first."""
    return keras.optimizers.Adam(lr)


def eval_metrics_fn() -> dict[str, keras.metrics.Metric]:
    """What an evaluation reports."""
    return {"accuracy": keras.metrics.SparseCategoricalAccuracy()}
