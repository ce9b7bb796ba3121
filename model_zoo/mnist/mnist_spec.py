"""A small dense network for 28x28 digits, written as one class: an `ElasticDLSpec`.

A record is a `tf.train.Example`: `image` holds the 784 pixels as bytes, `label` the digit.
"""

from typing import Any

import keras
import tensorflow as tf

from elasticdl import ElasticDLSpec, Mode


class MnistSpec(ElasticDLSpec):
    """`--model_params="hidden_units=64"` sets the width of the hidden layer."""

    def __init__(self, context: dict[str, Any] | None = None, hidden_units: int = 128) -> None:
        super().__init__(context=context)
        self.hidden_units = hidden_units

    def create_model(self) -> keras.Model:
        """Image in, ten logits out."""
        image = keras.Input((28, 28), name="image")
        x = keras.layers.Flatten()(image)
        x = keras.layers.Dense(self.hidden_units, activation="relu")(x)
        logits = keras.layers.Dense(10)(x)
        return keras.Model(image, logits, name="mnist")

    def create_optimizer(self, lr: float = 0.003) -> keras.optimizers.Optimizer:
        """Adam; its rate is the one to tune first."""
        return keras.optimizers.Adam(lr)

    def create_loss(self, outputs: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Cross-entropy, averaged over the minibatch."""
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs)
        )

    def create_metrics(
        self,
        mode: Mode = Mode.TRAINING,
        outputs: tf.Tensor | None = None,
        labels: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """What an evaluation reports; nothing while training."""
        if mode != Mode.EVALUATION:
            return {}
        hits = tf.equal(tf.argmax(outputs, axis=1), labels)
        return {"accuracy": tf.reduce_mean(tf.cast(hits, tf.float32))}

    def create_dataset(self, dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
        """Records to pairs of features and label; to features alone for prediction."""
        description = {"image": tf.io.FixedLenFeature([], tf.string)}
        if mode != Mode.PREDICTION:
            description["label"] = tf.io.FixedLenFeature([], tf.int64)

        def parse(record: tf.Tensor) -> tuple | dict:
            example = tf.io.parse_single_example(record, description)
            pixels = tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), (28, 28))
            features = {"image": tf.cast(pixels, tf.float32) / 255}
            return features if mode == Mode.PREDICTION else (features, example["label"])

        dataset = dataset.map(parse)
        return dataset.shuffle(1024) if mode == Mode.TRAINING else dataset
