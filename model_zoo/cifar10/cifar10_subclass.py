"""A residual network for 32x32 colour images of ten classes, as a subclass of `keras.Model`.

Everything but the model comes from `cifar10_functional.py`: files of one zoo may import each other.
"""

from typing import Any

import keras
import tensorflow as tf
from cifar10.cifar10_functional import dataset_fn, eval_metrics_fn, loss, optimizer

__all__ = ["Cifar10Model", "dataset_fn", "eval_metrics_fn", "loss", "optimizer"]


class Residual(keras.layers.Layer):
    """A convolution whose result is added to its input."""

    def __init__(self, filters: int) -> None:
        super().__init__()
        self.conv = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.norm = keras.layers.BatchNormalization(momentum=0.9)

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """The sum goes through the ReLU, so the shortcut stays in reach of the gradient."""
        return tf.nn.relu(x + self.norm(self.conv(x), training=training))


class Cifar10Model(keras.Model):
    """Image in, ten logits out."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # Keras passes its own here when it loads a saved model
        widths = (16, 32, 64)
        self.down = [keras.layers.Conv2D(w, 3, strides=2, padding="same") for w in widths]
        self.blocks = [Residual(w) for w in widths]
        self.flatten = keras.layers.Flatten()
        self.logits = keras.layers.Dense(10)

    def call(self, image: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Three times: halve the image, then refine it."""
        x = image
        for down, block in zip(self.down, self.blocks, strict=True):
            x = block(down(x), training=training)
        return self.logits(self.flatten(x))
