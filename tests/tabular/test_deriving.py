"""The plan of a table: by types and values, the label, what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tables import call, clause, plan_of, profile_of

from elasticdl.errors import DataError
from elasticdl.tabular.derive import Profile, derive, describe
from elasticdl.tabular.plan import FeaturePlan


def column(values: Any, **given: Any) -> tuple[str, dict[str, Any], str]:
    """The kind, the parameters and the dtype of the only column."""
    plan = plan_of(pa.table({"x": values}), **given)
    (feature,) = plan.features
    return feature.kind, dict(feature.params), plan.columns[0].dtype


def test_numbers_are_normalised() -> None:
    kind, params, dtype = column([1, 3])
    assert (kind, dtype) == ("number", "float32")
    assert params == {"mean": 2.0, "variance": 1.0, "missing": False}


def test_nulls_get_an_indicator() -> None:
    assert column([1, 3, None])[1]["missing"]
    assert column([True, False, None])[1]["missing"]
    assert column([1.0, 3.0, float("nan")])[1]["missing"]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2**24 + 1, 0], "int64"),
        (pa.array([2**63 + 1, 0], pa.uint64()), "float64"),
        ([1e-9, 2e-9], "float64"),
        ([1e6 + 0.001, 1e6], "float64"),
        ([-(2.0**40), 2.0**40], "float64"),
        ([2**24, -(2**24)], "float32"),
    ],
    ids=str,
)
def test_numbers_that_a_float32_would_blur_have_64_bits(values: Any, dtype: str) -> None:
    assert column(values)[2] == dtype


def test_texts_are_a_vocabulary_by_frequency() -> None:
    kind, params, dtype = column(["b", "a", "b", None, "ü"])
    assert (kind, dtype) == ("vocabulary", "string")
    assert params["vocabulary"] == ["b", "", "a", "ü"]
    assert params["encoding"] == "one_hot"


def test_a_vocabulary_has_the_tokens_that_keras_adapts(tensorflow: None) -> None:
    import keras

    values = [f"w{i % 7}" for i in range(100)] + ["w3"] * 5
    layer = keras.layers.StringLookup()
    layer.adapt(np.array(values))
    assert set(column(values)[1]["vocabulary"]) == set(layer.get_vocabulary(False))
    assert column(values)[1]["vocabulary"][0] == layer.get_vocabulary(False)[0]


def test_many_texts_are_embedded_and_very_many_hashed() -> None:
    kind, params, _ = column([f"v{i}" for i in range(33)])
    assert (kind, params["encoding"], params["size"]) == ("vocabulary", "embedding", 33)
    kind, params, _ = column([f"v{i}" for i in range(1001)])
    assert (kind, params["encoding"]) == ("hash", "embedding")
    assert params["size"] >= 2 * 1001


def test_times_know_their_hour_only_as_timestamps(table: pa.Table) -> None:
    kinds = {f.name: f for f in plan_of(table, "salary").features}
    assert not kinds["hired"].params["hour"]
    assert kinds["seen"].params["hour"]


def test_constant_and_empty_columns_are_left_out_with_a_remark() -> None:
    rows = pa.table(
        {"x": [1, 2], "c": ["k", "k"], "n": pa.nulls(2), "e": pa.array([None, None], pa.string())}
    )
    plan = plan_of(rows)
    assert [c.name for c in plan.columns] == ["x"]
    assert "column c is left out: it has the same value in all rows, 'k'" in plan.remarks[0]
    assert "column n is left out: it has only NULLs" in plan.remarks[1]
    assert len(plan.remarks) == 3


def test_a_constant_with_nulls_is_kept_for_its_nulls() -> None:
    assert column([5, None])[1] == {"mean": 5.0, "variance": 1.0, "missing": True}


def test_a_column_of_names_is_left_out_with_a_remark(plan: FeaturePlan, table: pa.Table) -> None:
    assert "email" not in {column.name for column in plan.columns}
    assert any(
        "column email is left out: it has another value in nearly every row" in r
        for r in plan.remarks
    )
    said = plan_of(table, "salary", groups=clause(call(None, "email")))
    assert "email" in {column.name for column in said.columns}
    assert not said.remarks


def test_names_are_used_in_few_rows_or_where_there_is_nothing_else(table: pa.Table) -> None:
    assert "email" in {column.name for column in plan_of(table.slice(0, 99), "salary").columns}
    alone = plan_of(table.select(["email", "salary"]), "salary")
    assert [column.name for column in alone.columns] == ["email"]


def test_columns_that_are_excluded_or_the_label_are_no_features(table: pa.Table) -> None:
    plan = plan_of(table, "SALARY", exclude=["role"])
    assert not {"role", "salary"} & {c.name for c in plan.columns}
    assert plan.label is not None and plan.label.name == "salary"


@pytest.mark.parametrize(
    ("values", "task", "expected"),
    [
        (["a", "b"], None, ("classification", "string", ("a", "b"))),
        ([True, False], None, ("classification", "int64", (False, True))),
        ([2, 0, 0, 2] * 5, None, ("classification", "int64", (0, 2))),
        ([2, 0, 1, 7], None, ("regression", "float32", ())),
        ([0.0, 1.0], None, ("regression", "float32", ())),
        ([0.0, 1.0], "classification", ("classification", "int64", (0.0, 1.0))),
        ([5, 7], "classification", ("classification", "int64", (5, 7))),
        ([5, 7], "regression", ("regression", "float32", ())),
        ([True, False], "regression", ("regression", "float32", ())),
        (["", "b"], None, ("classification", "string", ("", "b"))),
    ],
)
def test_the_task_goes_by_the_model_else_by_the_label(
    values: Any, task: Any, expected: Any
) -> None:
    rows = pa.table({"x": range(len(values)), "y": values})
    label = plan_of(rows, "y", task=task).label
    assert label is not None
    assert (label.task, label.dtype, label.classes) == expected


def test_the_scale_of_a_label_is_known() -> None:
    label = plan_of(pa.table({"x": [1, 2], "y": [10.0, 30.0]}), "y").label
    assert label is not None and (label.mean, label.std) == (20.0, 10.0)


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        ([1, None], None, r"NULL in 1 of 2 rows.*WHERE y IS NOT NULL"),
        ([1.0, float("nan")], None, r"NaN or infinite in 1 of 2 rows"),
        ([3, 3], None, r"same value in all rows, 3"),
        (["a", "b"], "regression", r"is string, and a regression predicts numbers"),
        ([[1], [2]], None, r"cannot be predicted"),
        ([0.5, 1.5], "classification", r"such as 0.5, which are no classes"),
        ([b"a", b"b"], None, r"cannot be predicted"),
        ([1e300, 2.0], "regression", r"too large"),
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(values: Any, task: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        plan_of(pa.table({"x": [1, 2], "y": values}), "y", task=task)


def test_more_classes_than_ten_thousand_are_refused() -> None:
    rows = pa.table({"x": range(10_001), "y": [f"c{i}" for i in range(10_001)]})
    with pytest.raises(DataError, match="more than 10,000 different values"):
        plan_of(rows, "y")


def test_an_unknown_label_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"'salery'.*Did you mean 'salary'"):
        plan_of(pa.table({"x": [1, 2], "salary": [1, 2]}), "salery")


def test_no_rows_are_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        derive(Profile(pa.schema({"x": pa.int8()})), label=None, task=None)


def test_no_features_are_refused_with_the_reason() -> None:
    with pytest.raises(DataError, match=r"no column to learn from.*column x is left out"):
        plan_of(pa.table({"x": [1, 1], "y": [1, 2]}), "y")


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int8())),
    ],
    ids=lambda array: str(array.type),
)
def test_types_that_are_no_single_value_are_refused(array: pa.Array) -> None:
    with pytest.raises(DataError, match=r"'x' is .*Leave it out of the SELECT, or cast it"):
        plan_of(pa.table({"x": array, "z": [1, 2]}))
    assert plan_of(pa.table({"x": array, "z": [1, 2]}), exclude=["x"]).columns


def test_numbers_too_large_to_compute_with_are_refused() -> None:
    with pytest.raises(DataError, match="'x' has values up to 1e\\+300"):
        plan_of(pa.table({"x": [1e300, -1e300]}))


def test_a_column_that_is_selected_twice_is_refused() -> None:
    rows = pa.Table.from_arrays([pa.array([1, 2])] * 2, ["id", "id"])
    with pytest.raises(DataError, match="'id' is selected more than once"):
        derive(profile_of(rows), label=None, task=None)


def test_a_plan_is_json(plan: FeaturePlan) -> None:
    assert FeaturePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_every_column_is_described_in_words(plan: FeaturePlan) -> None:
    rows = describe(plan)
    words = {name: text for name, _, text in rows}
    assert [name for name, _, _ in rows] == [*(c.name for c in plan.columns), "salary"]
    assert "number, normalised" in words["age"] and "NULL" in words["age"]
    assert "one of 5 values" in words["role"] and "one-hot" in words["role"]
    assert "day of the week" in words["hired"]
    assert "label, a number" in words["salary"]
    assert dict((name, source) for name, source, _ in rows)["bonus"] == "decimal128(10, 2)"


def test_crosses_are_described_by_their_columns() -> None:
    rows = pa.table({"a": ["x", "y"], "b": [1, 2]})
    plan = plan_of(rows, groups=clause(call("CROSS", ("a", "b"), 10)))
    assert describe(plan)[0] == (
        "a, b",
        "string, int64",
        "crossed, hashed into 10 buckets, one-hot",
    )
