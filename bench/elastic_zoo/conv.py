"""The MNIST conv net of the other benchmarks, as a model file. Where BENCH_TIMES names a directory, each process
writes when it took a step."""

import os
import time

import keras
import tensorflow as tf

L = keras.layers


def custom_model():
    return keras.Sequential(
        [
            keras.Input((28, 28), name="image"),
            L.Reshape((28, 28, 1)),
            L.Conv2D(32, 3, activation="relu"),
            L.Conv2D(64, 3, activation="relu"),
            L.BatchNormalization(),
            L.MaxPooling2D(),
            L.Dropout(0.25),
            L.Flatten(),
            L.Dense(10),
        ]
    )


def loss(labels, predictions):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, predictions)


def optimizer():
    return keras.optimizers.SGD(0.1)


def dataset_fn(dataset, mode, metadata):
    def parse(record):
        values = tf.io.decode_raw(record, tf.uint8)
        image = tf.cast(tf.reshape(values[:-1], (28, 28)), tf.float32) / 255.0
        return {"image": image}, tf.cast(values[-1], tf.int64)

    return dataset.map(parse)


class Times(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        with open(os.path.join(os.environ["BENCH_TIMES"], str(os.getpid())), "a") as file:
            print(time.time(), file=file)


def callbacks():
    return [Times()] if os.environ.get("BENCH_TIMES") else []
