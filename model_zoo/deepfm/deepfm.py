"""DeepFM: will this be clicked? From records that hold any number of feature ids.

A record is a `tf.train.Example`: `ids` are the features that are on (user, item, tags; from 1 up),
`label` is 1 for a click. A factorisation machine weighs each pair of ids, a dense network the rest.
"""

import keras
import tensorflow as tf

from elasticdl import Mode

NUM_IDS = 120
MAX_IDS = 16  # of one record; more are cut off, fewer are padded with the id 0


def custom_model(dim: int = 8, hidden_units: tuple[int, ...] = (32,)) -> keras.Model:
    """Padded ids in, the probability of a click out."""
    ids = keras.Input((MAX_IDS,), dtype="int64", name="ids")
    is_on = keras.ops.cast(keras.ops.not_equal(ids, 0), "float32")[..., None]

    linear = keras.layers.Embedding(NUM_IDS, 1, embeddings_initializer="zeros")(ids)
    first_order = keras.ops.sum(is_on * linear, axis=1)

    vectors = is_on * keras.layers.Embedding(NUM_IDS, dim)(ids)
    total = keras.ops.sum(vectors, axis=1)
    squares = keras.ops.sum(keras.ops.square(vectors), axis=1)
    # The square of the sum holds every pair twice and, beside them, the squares.
    pairs = 0.5 * keras.ops.sum(keras.ops.square(total) - squares, axis=1, keepdims=True)

    x = total
    for units in hidden_units:
        x = keras.layers.Dense(units, activation="relu")(x)
    deep = keras.layers.Dense(1)(x)

    probability = keras.ops.sigmoid(first_order + pairs + deep)
    return keras.Model(ids, probability, name="deepfm")


def dataset_fn(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
    """Records to pairs of padded ids and label; to padded ids alone for prediction."""
    description = {"ids": tf.io.RaggedFeature(tf.int64)}
    if mode != Mode.PREDICTION:
        description["label"] = tf.io.FixedLenFeature([1], tf.int64)

    def parse(record: tf.Tensor) -> tuple | dict:
        example = tf.io.parse_single_example(record, description)
        ids = example["ids"][:MAX_IDS]
        features = {"ids": tf.ensure_shape(tf.pad(ids, [[0, MAX_IDS - tf.size(ids)]]), [MAX_IDS])}
        return features if mode == Mode.PREDICTION else (features, example["label"])

    dataset = dataset.map(parse)
    return dataset.shuffle(4096) if mode == Mode.TRAINING else dataset


def loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, averaged over the minibatch."""
    return tf.reduce_mean(keras.losses.binary_crossentropy(labels, output))


def optimizer(lr: float = 0.01) -> keras.optimizers.Optimizer:
    """Adam; its rate is the one to tune first."""
    return keras.optimizers.Adam(lr)


def eval_metrics_fn() -> dict[str, keras.metrics.Metric]:
    """What an evaluation reports."""
    return {"auc": keras.metrics.AUC(), "accuracy": keras.metrics.BinaryAccuracy()}
