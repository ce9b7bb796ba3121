"""The confusion matrix of a classifier, counted batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elasticdl.reports.points import arrays_of

__all__ = ["MOST_CLASSES", "ClassScores", "Confusion", "ConfusionCounter"]

MOST_CLASSES = 1000

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ClassScores:
    """How one class was told from the others; NaN where there is nothing to divide by."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Confusion:
    """How often which class (row) was taken for which (column)."""

    counts: Array
    names: Sequence[str]
    left_out: int = 0
    """Data points whose prediction was not a number."""

    @property
    def accuracy(self) -> float:
        return _ratio(np.trace(self.counts), self.counts.sum())

    def scores(self) -> list[ClassScores]:
        """Precision, recall and F1 of each class."""
        right = np.diag(self.counts)
        found, there = self.counts.sum(axis=0), self.counts.sum(axis=1)
        return [
            ClassScores(
                name,
                precision=_ratio(right[i], found[i]),
                recall=_ratio(right[i], there[i]),
                f1=_ratio(2 * right[i], found[i] + there[i]),
                support=int(there[i]),
            )
            for i, name in enumerate(self.names)
        ]


class ConfusionCounter:
    """Counts as long as labels and predictions look like those of a classifier.

    That is: labels that are whole numbers or one-hot, with a vector of a score a class; or labels of 0
    and 1 with one probability.

    >>> counter = ConfusionCounter(["cat", "dog"])
    >>> counter.add(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]))
    >>> counter.confusion().counts.tolist()
    [[1, 0], [1, 1]]
    """

    def __init__(self, class_names: Sequence[str] | None = None) -> None:
        self._names = [str(name) for name in class_names or ()]
        self._counts: Array | None = None
        self._left_out = 0
        self._fits = True

    def add(self, labels: Any, predictions: Any) -> None:
        """Count a batch; the first that does not fit makes it no classification for good."""
        if not self._fits:
            return
        pair = _classes(arrays_of(labels), arrays_of(predictions))
        if pair is None or (self._counts is not None and len(self._counts) != pair.num_classes):
            self._fits = False
            self._counts = None
            return
        if self._counts is None:
            self._counts = np.zeros((pair.num_classes, pair.num_classes), np.int64)
        np.add.at(self._counts, (pair.truths, pair.guesses), 1)
        self._left_out += pair.left_out

    def confusion(self) -> Confusion | None:
        """What was counted; None when it is no classification, or nothing was counted."""
        if self._counts is None or not self._counts.any():
            return None
        names = [*self._names, *map(str, range(len(self._names), len(self._counts)))]
        return Confusion(self._counts.copy(), names[: len(self._counts)], self._left_out)


@dataclass(frozen=True)
class _Pair:
    truths: Array
    guesses: Array
    num_classes: int
    left_out: int


def _classes(labels: Any, predictions: Any) -> _Pair | None:
    """The classes of a batch, or None when these are not a classifier's labels and predictions."""
    if not (_is_numeric(labels) and _is_numeric(predictions)) or len(labels) != len(predictions):
        return None
    scores = predictions.reshape(-1, 1) if predictions.ndim == 1 else predictions
    if scores.ndim != 2 or not 1 <= scores.shape[1] <= MOST_CLASSES:
        return None
    there = ~np.isnan(scores).any(axis=1)
    truths = _truths(labels, max(2, scores.shape[1]))
    if truths is None:
        return None
    if scores.shape[1] > 1:
        guesses = scores.argmax(axis=1)
    elif ((scores[there] >= 0) & (scores[there] <= 1)).all():
        guesses = (scores[:, 0] > 0.5).astype(np.int64)
    else:
        return None
    left_out = len(there) - int(there.sum())
    return _Pair(truths[there], guesses[there], max(2, scores.shape[1]), left_out)


def _truths(labels: Array, num_classes: int) -> Array | None:
    if labels.ndim == 2 and labels.shape[1] == num_classes:
        one_hot = ((labels == 0) | (labels == 1)).all() and (labels.sum(axis=1) == 1).all()
        return labels.argmax(axis=1) if one_hot else None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or not ((labels >= 0) & (labels < num_classes)).all():
        return None
    whole = labels.astype(np.int64)
    return whole if (whole == labels).all() else None


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in "biuf"


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")
