"""Classifiers are recognised by their labels and predictions, and counted as scikit-learn counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from elasticdl.reports import Confusion, ConfusionCounter

RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 4, 200)
SCORES = RNG.random((200, 4)) + np.eye(4)[LABELS] * 0.5
PROBABILITY = RNG.random(200)


def counted(labels: Any, predictions: Any, batch: int = 16) -> Confusion | None:
    counter = ConfusionCounter()
    for start in range(0, len(labels), batch):
        counter.add(labels[start : start + batch], predictions[start : start + batch])
    return counter.confusion()


def compare(confusion: Confusion | None, truths: Any, guesses: Any) -> None:
    assert confusion is not None
    classes = range(len(confusion.names))
    np.testing.assert_array_equal(
        confusion.counts, confusion_matrix(truths, guesses, labels=list(classes))
    )
    assert confusion.accuracy == pytest.approx(accuracy_score(truths, guesses))
    expected = precision_recall_fscore_support(
        truths, guesses, labels=list(classes), zero_division=np.nan
    )
    ours = [(one.precision, one.recall, one.f1, one.support) for one in confusion.scores()]
    np.testing.assert_allclose(np.array(ours).T, np.array(expected), equal_nan=True)


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        LABELS.astype(np.float32),
        LABELS[:, None],
        np.eye(4)[LABELS],
        np.eye(4, dtype=bool)[LABELS],
    ],
    ids=["integers", "whole floats", "a column", "one-hot", "one-hot booleans"],
)
def test_scores_of_many_classes(labels: Any) -> None:
    compare(counted(labels, SCORES), LABELS, SCORES.argmax(axis=1))


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_probability(shape: tuple[int, ...]) -> None:
    truths = LABELS % 2
    confusion = counted(truths.reshape(shape), PROBABILITY.reshape(shape))
    compare(confusion, truths, (PROBABILITY > 0.5).astype(int))


def test_classes_that_were_never_predicted_or_never_there() -> None:
    truths = np.array([0, 0, 1, 1])
    scores = np.eye(4)[[0, 1, 1, 1]]
    compare(counted(truths, scores), truths, scores.argmax(axis=1))
    scores = np.eye(4)[[0, 3, 0, 0]]
    compare(counted(truths, scores), truths, scores.argmax(axis=1))


def test_tensors(tensorflow: None) -> None:
    import tensorflow as tf

    compare(counted(tf.constant(LABELS), tf.constant(SCORES)), LABELS, SCORES.argmax(axis=1))


def test_predictions_that_are_not_a_number_are_left_out_and_counted() -> None:
    scores = SCORES.copy()
    scores[3] = np.nan
    confusion = counted(LABELS, scores)
    assert confusion is not None
    assert (confusion.counts.sum(), confusion.left_out) == (199, 1)


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        (LABELS * 0.3, SCORES),
        (LABELS - 1, SCORES),
        (LABELS + 1, SCORES),
        (SCORES, SCORES),
        ((SCORES > 0.5).astype(int), SCORES),
        (LABELS, PROBABILITY),
        (LABELS % 2, PROBABILITY * 3 - 1),
        (PROBABILITY, PROBABILITY),
        (np.zeros((200, 8, 8)), np.zeros((200, 8, 8, 4))),
        (np.zeros(200, int), np.zeros((200, 1001))),
        (np.array(["a"] * 200), SCORES),
    ],
    ids=[
        "fractions",
        "below 0",
        "above the last",
        "vectors",
        "several labels",
        "classes, one number",
        "logits",
        "regression",
        "images",
        "too many",
        "text",
    ],
)
def test_other_tasks_have_none(labels: Any, predictions: Any) -> None:
    assert counted(labels, predictions) is None


def test_one_batch_that_does_not_fit_is_enough() -> None:
    counter = ConfusionCounter()
    counter.add(LABELS, SCORES)
    counter.add({"a": LABELS}, SCORES)
    counter.add(LABELS, SCORES)
    assert counter.confusion() is None
    assert ConfusionCounter().confusion() is None


def test_names_of_classes() -> None:
    for given, names in (
        (["a", "b", "c", "d"], ["a", "b", "c", "d"]),
        (["a"], ["a", "1", "2", "3"]),
        (list("abcdef"), ["a", "b", "c", "d"]),
    ):
        counter = ConfusionCounter(given)
        counter.add(LABELS, SCORES)
        confusion = counter.confusion()
        assert confusion is not None
        assert list(confusion.names) == names
