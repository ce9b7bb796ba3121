"""Wide and deep: does a person earn more than 50K? From a table with words in it.

The wide part remembers single words and pairs of them; the deep part generalises over embeddings.
The words are looked up inside the model, so that what is exported takes them as they are.
"""

from typing import Any

import keras
import tensorflow as tf

from elasticdl import Mode

NUMBERS = {"age": 50.0, "hours": 40.0}  # each with the scale that brings it near one
WORDS = {
    "workclass": ["Private", "Self-employed", "Government"],
    "education": ["School", "College", "Bachelor", "Master", "Doctorate"],
    "marital": ["Single", "Married", "Divorced"],
}
HASHED = "occupation"  # too many values to list
LABEL = "income"


def custom_model(hidden_units: tuple[int, ...] = (32, 16)) -> keras.Model:
    """Named columns in, the probability of more than 50K out."""
    inputs = {name: keras.Input((), name=name) for name in NUMBERS}
    inputs |= {name: keras.Input((), name=name, dtype="string") for name in [*WORDS, HASHED]}

    crossed = (inputs["education"], inputs[HASHED])
    wide = [keras.layers.HashedCrossing(64, output_mode="one_hot")(crossed)]
    deep = [
        keras.layers.Reshape((1,))(keras.layers.Rescaling(1 / scale)(inputs[name]))
        for name, scale in NUMBERS.items()
    ]
    for name, words in WORDS.items():
        ids = keras.layers.StringLookup(vocabulary=words)(inputs[name])
        wide.append(keras.layers.CategoryEncoding(len(words) + 1, output_mode="one_hot")(ids))
        deep.append(keras.layers.Embedding(len(words) + 1, 4)(ids))
    deep.append(keras.layers.Embedding(32, 4)(keras.layers.Hashing(32)(inputs[HASHED])))

    x = keras.layers.Concatenate()(deep)
    for units in hidden_units:
        x = keras.layers.Dense(units, activation="relu")(x)
    both = keras.layers.Concatenate()([*wide, x])
    probability = keras.layers.Dense(1, activation="sigmoid")(both)
    return keras.Model(inputs, probability, name="census")


def dataset_fn(dataset: tf.data.Dataset, mode: Mode, metadata: Any) -> tf.data.Dataset:
    """Rows to pairs of named columns and label: the metadata knows the names in the header."""

    def parse(row: tf.Tensor) -> tuple | dict:
        columns = dict(zip(metadata.column_names, tf.unstack(row), strict=True))
        features = {name: tf.strings.to_number(columns[name]) for name in NUMBERS}
        features |= {name: columns[name] for name in [*WORDS, HASHED]}
        if mode == Mode.PREDICTION:
            return features
        return features, [tf.cast(columns[LABEL] == ">50K", tf.float32)]

    dataset = dataset.map(parse)
    return dataset.shuffle(1024) if mode == Mode.TRAINING else dataset


def loss(labels: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, averaged over the minibatch."""
    return tf.reduce_mean(keras.losses.binary_crossentropy(labels, output))


def optimizer(lr: float = 0.01) -> keras.optimizers.Optimizer:
    """Adam; its rate is the one to tune first."""
    return keras.optimizers.Adam(lr)


def eval_metrics_fn() -> dict[str, keras.metrics.Metric]:
    """What an evaluation reports."""
    return {"accuracy": keras.metrics.BinaryAccuracy(), "auc": keras.metrics.AUC()}
