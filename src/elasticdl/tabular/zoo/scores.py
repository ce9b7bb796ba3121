"""Metrics that Keras has for one-hot labels only, or that lose their digits in float32."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class PositiveAUC(keras.metrics.AUC):
    """The area under the ROC curve of the second of two classes."""

    is_additive = True  # states of several workers may be summed

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(tf.reshape(y_true, [-1]), y_pred[:, 1], sample_weight)

    @property
    def is_defined(self) -> bool:
        """Whether rows of both classes were seen: of one there is no curve."""
        positive = self.true_positives.value[0] + self.false_negatives.value[0]
        negative = self.true_negatives.value[0] + self.false_positives.value[0]
        return bool(positive > 0) and bool(negative > 0)


class ClassScore(keras.metrics.Metric):
    """Precision, recall or F1: of the second of two classes, else averaged over the classes that occur."""

    is_additive = True

    def __init__(self, kind: str, num_classes: int, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name or kind, **kwargs)
        self.kind, self.num_classes = kind, num_classes
        shape, zeros = (num_classes,), "zeros"
        self.hits = self.add_variable(shape, zeros, name="hits")
        self.predicted = self.add_variable(shape, zeros, name="predicted")
        self.actual = self.add_variable(shape, zeros, name="actual")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels = tf.cast(tf.reshape(y_true, [-1]), tf.int32)
        chosen = tf.argmax(y_pred, axis=-1, output_type=tf.int32)
        weight = tf.ones_like(labels, self.dtype)
        if sample_weight is not None:
            weight = tf.reshape(tf.cast(sample_weight, self.dtype), [-1])
        hit = tf.where(labels == chosen, weight, 0.0)
        self.hits.assign_add(self._by_class(labels, hit))
        self.predicted.assign_add(self._by_class(chosen, weight))
        self.actual.assign_add(self._by_class(labels, weight))

    def result(self) -> Any:
        precision = tf.math.divide_no_nan(self.hits.value, self.predicted.value)
        recall = tf.math.divide_no_nan(self.hits.value, self.actual.value)
        f1 = tf.math.divide_no_nan(2 * precision * recall, precision + recall)
        by_class = {"precision": precision, "recall": recall, "f1": f1}[self.kind]
        if self.num_classes == 2:
            return by_class[1]
        occurs = tf.cast((self.actual.value + self.predicted.value) > 0, self.dtype)
        return tf.math.divide_no_nan(tf.reduce_sum(by_class * occurs), tf.reduce_sum(occurs))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "kind": self.kind, "num_classes": self.num_classes}

    def _by_class(self, classes: Any, weight: Any) -> Any:
        return tf.math.unsorted_segment_sum(weight, classes, self.num_classes)


class CentredR2(keras.metrics.R2Score):
    """R2 of labels brought near to zero first: it subtracts sums of squares, which are large far from it."""

    is_additive = True

    def __init__(self, mean: float = 0.0, std: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.label_mean, self.label_std = mean, std

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(self._near(y_true), self._near(y_pred), sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "mean": self.label_mean, "std": self.label_std}

    def _near(self, values: Any) -> Any:
        return (tf.cast(values, tf.float64) - self.label_mean) / self.label_std
