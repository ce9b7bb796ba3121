"""Two models with all that is hard to replay: dropout, batch statistics, Adam, shuffles, a callback that counts."""

import keras
import tensorflow as tf


def layers(units):
    return [
        keras.layers.Dense(units, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.3),
        keras.layers.GaussianNoise(0.1),
        keras.layers.Dense(1),
    ]


def functional(units=8):
    inputs = keras.Input((3,))
    outputs = inputs
    for layer in layers(units):
        outputs = layer(outputs)
    return keras.Model(inputs, outputs)


class Subclassed(keras.Model):
    def __init__(self, units=8, **kwargs):
        super().__init__(**kwargs)
        self.steps = layers(units)

    def call(self, inputs, training=False):
        outputs = inputs + 0.01 * keras.random.normal((3,))  # a generator that no layer owns
        for layer in self.steps:
            outputs = layer(outputs, training=training)
        return outputs


def dataset_fn(dataset, mode):
    def parse(line):
        a, b, c, label = tf.unstack(
            tf.strings.to_number(tf.strings.split(line, ","), tf.float32), 4
        )
        return tf.stack([a, b, c]), label[None]

    dataset = dataset.map(parse)
    return dataset.shuffle(50) if mode == "training" else dataset


def loss(labels, predictions):
    return keras.losses.mean_squared_error(labels, predictions)


def optimizer():
    return keras.optimizers.Adam(0.01)


def eval_metrics_fn():
    return {"mae": keras.metrics.MeanAbsoluteError()}


def callbacks():
    return [keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=0.05)]
