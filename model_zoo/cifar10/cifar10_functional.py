"""A small convolutional network for 32x32 colour images of ten classes.

A record is a `tf.train.Example`: `image` holds 32 x 32 x 3 pixels as bytes, `label` the class.
"""

import keras
import tensorflow as tf

from elasticdl import Mode


def custom_model(dropout: float = 0.2) -> keras.Model:
    """Image in, ten logits out: three times convolve, normalise and halve."""
    image = keras.Input((32, 32, 3), name="image")
    x = image
    for filters in (16, 32, 64):
        x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = keras.layers.BatchNormalization(momentum=0.9)(x)
        x = keras.layers.ReLU()(x)
        x = keras.layers.MaxPooling2D(2)(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dropout(dropout)(x)
    logits = keras.layers.Dense(10)(x)
    return keras.Model(image, logits, name="cifar10")


def dataset_fn(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
    """Records to pairs of image and label; to images alone for prediction."""
    description = {"image": tf.io.FixedLenFeature([], tf.string)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([], tf.int64)

    def parse(record: tf.Tensor) -> tuple | tf.Tensor:
        example = tf.io.parse_single_example(record, description)
        pixels = tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), (32, 32, 3))
        image = tf.cast(pixels, tf.float32) / 127.5 - 1
        return image if mode == Mode.PREDICTION else (image, example["label"])

    dataset = dataset.map(parse)
    return dataset.shuffle(1024) if mode == Mode.TRAINING else dataset


def loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, averaged over the minibatch."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)
    )


def optimizer(lr: float = 0.003) -> keras.optimizers.Optimizer:
    """Adam; its rate is the one to tune first."""
    return keras.optimizers.Adam(lr)


def eval_metrics_fn() -> dict[str, keras.metrics.Metric]:
    """What an evaluation reports."""
    return {"accuracy": keras.metrics.SparseCategoricalAccuracy()}
