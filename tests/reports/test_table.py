"""Evaluation functions see one data point at a time, and the table keeps what they answer."""

from __future__ import annotations

import decimal
import traceback
from typing import Any

import numpy as np
import pandas as pd
import pytest

from elasticdl.errors import ContractError, DataError, UnknownName
from elasticdl.reports import PointTable


def error(y_true: Any, y_pred: Any) -> Any:
    return abs(y_true - y_pred)


def answering(answer: Any) -> PointTable:
    table = PointTable({"odd one": lambda y_true, y_pred: answer})
    table.add(["a.png"], np.zeros(1), np.zeros((1, 3)))
    return table


def test_statistics_are_those_of_pandas() -> None:
    values = np.random.default_rng(0).normal(size=997)
    values[::50] = np.nan
    table = PointTable({"value": lambda y_true, y_pred: y_pred})
    for start in range(0, len(values), 64):
        part = values[start : start + 64]
        table.add(range(start, start + len(part)), np.zeros(len(part)), part)

    described = pd.Series(values).describe()
    statistics = table.statistics()["value"]
    assert dict(zip(statistics.NAMES[:8], statistics.row()[:8], strict=True)) == pytest.approx(
        described.to_dict()
    )
    assert statistics.missing == 20
    assert table.means()["value"] == pytest.approx(np.nanmean(values))
    np.testing.assert_array_equal(table.values("value"), values)


@pytest.mark.parametrize("values", [[], [1.5], [np.nan], [np.inf, 1.0, 2.0]])
def test_statistics_of_few_or_infinite_values(values: list[float]) -> None:
    table = PointTable({"value": lambda y_true, y_pred: y_pred})
    table.add(list(range(len(values))), np.zeros(len(values)), np.array(values))

    statistics = table.statistics()["value"]
    assert statistics.count == np.count_nonzero(~np.isnan(values))
    assert np.isnan(statistics.std)
    assert statistics.max == pytest.approx(max(values, default=np.nan), nan_ok=True)


def test_functions_get_one_data_point_that_speaks_numpy_and_tensor(tensorflow: None) -> None:
    import tensorflow as tf

    seen = []

    def look(y_true: Any, y_pred: Any) -> float:
        seen.append((type(y_true), y_pred.shape, y_pred.numpy().sum(), hash(y_true)))
        return float(tf.gather(y_pred, y_true))

    table = PointTable({"look": look})
    predictions = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    table.add(tf.constant(["a", "b"]), tf.constant([0, 2], tf.int64), tf.constant(predictions))

    assert seen == [(np.int64, (3,), 6, hash(0)), (np.int64, (3,), 15, hash(2))]
    assert table.ids == ["a", "b"]
    assert table.values("look").tolist() == [1, 6]


def test_keras_losses_as_evaluation_functions(tensorflow: None) -> None:
    import keras

    def ce(y_true: Any, y_pred: Any) -> Any:
        return keras.losses.SparseCategoricalCrossentropy()(y_true, y_pred).numpy()

    table = PointTable({"ce": ce})
    table.add(
        [b"image_0.jpg", b"image_1.jpg"], np.array([1, 0]), np.array([[0.25, 0.75], [0.5, 0.5]])
    )
    assert table.values("ce") == pytest.approx([-np.log(0.75), -np.log(0.5)], rel=1e-5)


def test_labels_and_predictions_in_dicts_tuples_and_lists() -> None:
    table = PointTable({"sum": lambda y_true, y_pred: y_true["a"] + y_pred[0].sum() + y_pred[1]})
    labels = {"a": np.array([1.0, 2.0]), "b": np.zeros((2, 2))}
    table.add(["x", "y"], labels, (np.ones((2, 3)), np.array([10, 20])))
    table.add(["z", "u"], labels, [np.ones((2, 3)), np.array([10, 20])])
    assert table.values("sum").tolist() == [14, 25, 14, 25]


def test_what_one_function_writes_the_next_does_not_see() -> None:
    def spoil(y_true: Any, y_pred: Any) -> float:
        y_pred[:] = 0
        return 0.0

    predictions = np.ones((2, 3))
    table = PointTable({"spoil": spoil, "sum": lambda y_true, y_pred: y_pred.sum()})
    table.add([1, 2], np.zeros(2), predictions)
    assert table.values("sum").tolist() == [3, 3]
    assert predictions.all()


@pytest.mark.parametrize(
    "answer",
    [1, True, np.True_, 1.0, np.float16(1), np.array(1), np.int8(1), decimal.Decimal(1)],
    ids=lambda answer: type(answer).__name__,
)
def test_answers_that_are_numbers(answer: Any) -> None:
    assert answering(answer).values("odd one").tolist() == [1]


def test_answers_that_are_tensors(tensorflow: None) -> None:
    import tensorflow as tf

    for answer in (
        tf.constant(1.0),
        tf.constant(1, tf.bfloat16),
        tf.constant(True),
        tf.Variable(1),
    ):
        assert answering(answer).values("odd one").tolist() == [1]
    with pytest.raises(ContractError, match=r"returned EagerTensor of shape \(1,\) for"):
        answering(tf.constant([1.0]))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "None"),
        ("good", "str 'good'"),
        ([1, 2], r"list \[1, 2\]"),
        (np.zeros(3), r"ndarray of shape \(3,\)"),
        (1j, "complex 1j"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (10**1000, "a number that is too large"),
    ],
)
def test_answers_that_are_no_number_are_refused(answer: Any, said: str) -> None:
    with pytest.raises(ContractError, match=f"'odd one' returned {said}.* data point 'a.png'"):
        answering(answer)


def test_an_error_of_theirs_keeps_its_traceback_and_tells_the_data_point() -> None:
    def fails(y_true: Any, y_pred: Any) -> float:
        return 1 / int(y_true)

    table = PointTable({"fails": fails})
    with pytest.raises(ZeroDivisionError) as raised:
        table.add([b"a", b"b"], np.array([1, 0]), np.zeros(2))
    assert traceback.extract_tb(raised.tb)[-1].name == "fails"
    assert raised.value.__notes__ == [
        "It was raised by the evaluation function 'fails' for the data point 'b'."
    ]
    assert len(table) == 0


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([b"image_0.jpg", "b"], ["image_0.jpg", "b"]),
        ([b"\xff", "\u00fc".encode()], ["\\xff", "\u00fc"]),
        (np.array([b"a", b"b"], object), ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([[3], [4]]), [3, 4]),
        ([np.int64(3), np.float64(0.5)], [3, 0.5]),
        (np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), ["2020-01-01", "2020-01-02"]),
        ([("p1", 2), None], ["('p1', 2)", "None"]),
    ],
)
def test_ids_are_text_or_numbers_of_python(ids: Any, kept: list[Any]) -> None:
    table = PointTable({"error": error})
    table.add(ids, np.zeros(2), np.zeros(2))
    assert table.ids == kept
    assert {type(one) for one in table.ids} <= {str, int, float}


def test_ids_that_were_there_before_are_kept_and_counted() -> None:
    table = PointTable({"error": error})
    table.add(["a", "b", "a"], np.zeros(3), np.arange(3))
    table.add([b"a", 1, "1"], np.zeros(3), np.arange(3))
    assert len(table) == 6
    assert table.duplicates == 3
    assert table.repeated_ids() == ["a", "1"]


def test_more_or_fewer_labels_than_ids_are_refused() -> None:
    table = PointTable({"error": error})
    with pytest.raises(DataError, match=r"2 data ids, but its labels are an array of shape \(3,\)"):
        table.add(["a", "b"], np.zeros(3), np.zeros(2))
    with pytest.raises(DataError, match=r"its predictions\['x'\] are an array of shape \(\)"):
        table.add(["a", "b"], np.zeros(2), {"x": np.zeros(())})


def test_names() -> None:
    with pytest.raises(ContractError, match="called 'data_id'"):
        PointTable({"data_id": error})
    with pytest.raises(UnknownName, match="Did you mean 'error'"):
        PointTable({"error": error}).values("eror")
