"""Keras layers for text that holds several values, which Keras itself has none for.

A `.keras` file with one of them is loaded after `import elasticdl.tabular.text_layers`; a SavedModel needs nothing.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

__all__ = ["SplitIds", "SplitNumbers"]


class _Split(keras.layers.Layer):  # type: ignore[misc]
    def __init__(self, size: int, separator: str = ",", **kwargs: Any) -> None:
        super().__init__(trainable=False, **{k: v for k, v in kwargs.items() if k != "trainable"})
        self.size, self.separator = size, separator

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size, "separator": self.separator}

    def _parts(self, texts: Any) -> Any:
        """A ragged tensor of the parts of each text; none of an empty one."""
        bare = tf.strings.strip(tf.strings.regex_replace(texts, r"[\[\]]", ""))
        # Without a separator TensorFlow splits at white space, and gives nothing for an empty text.
        parts = tf.strings.split(bare, None if self.separator == " " else self.separator)
        parts = tf.ragged.map_flat_values(tf.strings.strip, parts)
        return tf.ragged.boolean_mask(parts, parts != "")


@keras.saving.register_keras_serializable(package="elasticdl")
class SplitNumbers(_Split):
    """`'0.5,1.5'` as a row of `size` numbers; all NaN for an empty text."""

    def call(self, texts: Any) -> Any:
        parts = self._parts(texts)
        lengths = parts.row_lengths()
        wrong = tf.logical_and(lengths != self.size, lengths != 0)
        message = f"A text has not {self.size} numbers with {self.separator!r} between them:"
        check = tf.debugging.Assert(~tf.reduce_any(wrong), [message, tf.boolean_mask(texts, wrong)])
        with tf.control_dependencies([check]):
            numbers = tf.ragged.map_flat_values(tf.strings.to_number, parts)
            return numbers.to_tensor(float("nan"), shape=[None, self.size])

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape, self.size)

    def compute_output_spec(self, texts: Any) -> Any:
        return keras.KerasTensor((*texts.shape, self.size), "float32")


@keras.saving.register_keras_serializable(package="elasticdl")
class SplitIds(_Split):
    """`'3,5,7'` as a row of whole numbers, filled up with -1; so are numbers outside of [0, size)."""

    def call(self, texts: Any) -> Any:
        numbers = tf.ragged.map_flat_values(tf.strings.to_number, self._parts(texts), tf.int64)
        ids = numbers.to_tensor(-1)
        return tf.where(tf.logical_and(ids >= 0, ids < self.size), ids, -1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape, None)

    def compute_output_spec(self, texts: Any) -> Any:
        return keras.KerasTensor((*texts.shape, None), "int64")
