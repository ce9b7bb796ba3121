"""Models for jobs with workers. Where DIGESTS names a directory, processes write there what their weights are."""

import hashlib
import os
import signal
import time

import keras
import numpy as np
import tensorflow as tf

NUM_FEATURES = 16


def custom_model(units=32, dropout=0.2):
    """With all that depends on a batch or on chance."""
    inputs = keras.Input((NUM_FEATURES,), name="x")
    x = keras.layers.Dense(units, activation="relu")(inputs)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.Dropout(dropout)(x)
    return keras.Model(inputs, keras.layers.Dense(10)(x))


def plain_model(units=32):
    """Whose gradients do not depend on how a batch is split."""
    inputs = keras.Input((NUM_FEATURES,), name="x")
    x = keras.layers.Dense(units, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(10)(x))


class Broken(keras.layers.Layer):
    def call(self, x):
        return tf.py_function(self._raise, [x], tf.float32)

    def _raise(self, x):
        if len(x) > 1:
            raise ZeroDivisionError("the model is broken")
        return x


def loss(labels, predictions):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, predictions)


def optimizer():
    return keras.optimizers.Adam(3e-3)


def dataset_fn(dataset, mode, metadata):
    def parse(record):
        values = tf.io.decode_raw(record, tf.float32)
        tf.debugging.assert_equal(tf.size(values), NUM_FEATURES + 1)
        return {"x": values[:NUM_FEATURES]}, tf.cast(values[NUM_FEATURES], tf.int64)

    dataset = dataset.map(parse)
    return dataset.shuffle(128) if mode == "training" else dataset


def eval_metrics_fn():
    def accuracy(labels, predictions):
        right = tf.equal(tf.argmax(predictions, 1), tf.reshape(labels, [-1]))
        return tf.reduce_mean(tf.cast(right, tf.float32))

    return {"accuracy": accuracy, "precise": keras.metrics.SparseCategoricalAccuracy()}


class Digests(keras.callbacks.Callback):
    """After each step, which takes as long as one of a larger model: there is time to be hurt."""

    def on_train_batch_end(self, batch, logs=None):
        write_digest(self.model, batch)
        time.sleep(0.05)


def write_digest(model, number):
    digest = hashlib.sha1()
    for variable in model.variables + model.optimizer.variables:
        digest.update(np.asarray(variable).tobytes())
    with open(os.path.join(os.environ["DIGESTS"], f"{os.getpid()}.txt"), "a") as file:
        print(number, digest.hexdigest(), file=file)


def digests_of_epochs():
    """Nothing is to be seen after a step, so that one call of the graph takes many."""

    class Epochs(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            write_digest(self.model, int(self.model.optimizer.iterations))

    return [Epochs()]


def raises_at_step_20():
    class Raises(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 20:
                raise ZeroDivisionError("the callback is broken")

    return [Raises()]


def raises_at_an_epochs_end():
    class Raises(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 2:
                raise ZeroDivisionError("the callback is broken")

    return [Raises()]


def leader_dies_at_an_epochs_end():
    class Dies(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1 and os.readlink("/proc/self/fd/1").endswith("worker-0.log"):
                os.kill(os.getpid(), signal.SIGKILL)

    return [Dies()]


def one_eats_memory():
    class Eats(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            kept = []
            while os.readlink("/proc/self/fd/1").endswith("worker-1.log"):
                kept.append(np.ones(2**24))
                time.sleep(0.05)

    return [Eats()]


def callbacks():
    return [Digests()] if os.environ.get("DIGESTS") else []
