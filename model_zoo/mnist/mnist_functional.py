"""A convolutional network for 28x28 digits, written as functions: the form to start from.

A record is a `tf.train.Example`: `image` holds the 784 pixels as bytes, `label` the digit.
"""

from pathlib import Path

import keras
import tensorflow as tf

from elasticdl import Mode


def custom_model() -> keras.Model:
    """Image in, ten logits out."""
    image = keras.Input((28, 28), name="image")
    x = keras.layers.Reshape((28, 28, 1))(image)
    x = keras.layers.Conv2D(32, 3, activation="relu")(x)
    x = keras.layers.Conv2D(64, 3, activation="relu")(x)
    x = keras.layers.BatchNormalization(momentum=0.9)(x)
    x = keras.layers.MaxPooling2D(2)(x)
    x = keras.layers.Dropout(0.25)(x)
    x = keras.layers.Flatten()(x)
    logits = keras.layers.Dense(10)(x)
    return keras.Model(image, logits, name="mnist")


def dataset_fn(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
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


def prepare_data_for_a_single_file(filename: str) -> bytes:
    """One record of one image file; the directory that it lies in is its label: `.../7/img.png`."""
    image = tf.io.decode_image(tf.io.read_file(filename), channels=1, expand_animations=False)
    pixels = image.numpy().tobytes()
    label = int(Path(filename).parent.name)
    feature = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
