"""COLUMN functions: what they make of columns, and errors with the place and the usage."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from tables import PLACE, call, clause, plan_of

from elasticdl.errors import StatementError
from elasticdl.tabular.expression import Call, ColumnGroup, Span
from elasticdl.tabular.plan import Feature

ROWS = pa.table(
    {
        "age": [20, 30, 40, 50],
        "role": ["a", "b", "a", None],
        "pay": [1.5, 2.5, 3.5, 4.5],
        "ids": ["1,2", "", "0", "2, 1"],
        "vec": ["0.5 1", "1 1", "[2 3]", ""],
        "flag": [True, False, True, True],
        "part": [0, 1, None, 2],
        "y": [1.0, 2.0, 3.0, 4.0],
    }
)


def feature(made: Call, rows: pa.Table = ROWS) -> Feature:
    plan = plan_of(rows, "y", groups=clause(made))
    return plan.features[0]


@pytest.mark.parametrize(
    ("made", "kind", "params"),
    [
        (call(None, "age"), "number", {"mean": 35.0}),
        (call("DENSE", "age"), "number", {"mean": 35.0}),
        (call("NUMERIC", "AGE"), "number", {"mean": 35.0}),
        (call("DENSE", "age", 1), "number", {}),
        (
            call("DENSE", "vec", (2,), "space"),
            "vector",
            {"size": 2, "separator": " ", "mean": [3.5 / 3, 5 / 3]},
        ),
        (call("CATEGORY_ID", "age", 1000), "id", {"size": 1000, "encoding": "one_hot"}),
        (call("CATEGORY_ID", "age", 1001), "id", {"size": 1001, "encoding": "embedding"}),
        (
            call("CATEGORY_ID", "part", 3),
            "id",
            {"ids": 3, "size": 4, "missing": True, "encoding": "one_hot"},
        ),
        (call("CATEGORY_HASH", "role", 10), "hash", {"size": 10}),
        (call("SEQ_CATEGORY_ID", "ids", 3), "sequence", {"size": 3, "separator": ","}),
        (call("SPARSE", "ids", (100,), "comma"), "sequence", {"size": 100, "encoding": "one_hot"}),
        (call("VOCABULARY", "role", ("a", "b")), "vocabulary", {"unseen": True, "size": 3}),
        (call("VOCABULARY", "age", (20, 30)), "vocabulary", {"vocabulary": [20, 30]}),
        (
            call("BUCKET", call("DENSE", "age"), (25, 35.5)),
            "bucket",
            {"boundaries": [25.0, 35.5], "size": 3},
        ),
        (call("BUCKET", "age", 2), "bucket", {"boundaries": [35.0]}),
        (call("BUCKET", "part", (1,)), "bucket", {"size": 3, "missing": True}),
        (call("CROSS", ("role", "age"), 20), "cross", {"size": 20, "encoding": "one_hot"}),
        (
            call("CROSS", (call("BUCKET", "pay", (2,)), call("CATEGORY_ID", "age", 60)), 50),
            "cross",
            {},
        ),
        (
            call("EMBEDDING", call("CATEGORY_ID", "age", 60), 8),
            "id",
            {"encoding": "embedding", "dimension": 8},
        ),
        (call("EMBEDDING", "role", 4), "vocabulary", {"encoding": "embedding", "dimension": 4}),
        (
            call("EMBEDDING", call("SEQ_CATEGORY_ID", "ids", 3), 2, "sum"),
            "sequence",
            {"combiner": "sum"},
        ),
        (call("INDICATOR", call("CATEGORY_HASH", "role", 100)), "hash", {"encoding": "one_hot"}),
        (call("INDICATOR", "age"), "vocabulary", {"vocabulary": [20, 30, 40, 50]}),
        (call("INDICATOR", call(None, "flag")), "vocabulary", {"vocabulary": [0, 1]}),
    ],
    ids=lambda value: value.function if isinstance(value, Call) else "",
)
def test_functions_make_features(made: Call, kind: str, params: dict[str, Any]) -> None:
    found = feature(made)
    assert found.kind == kind
    for name, expected in params.items():
        assert found.params[name] == (pytest.approx(expected) if name == "mean" else expected)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (call(None, "agee"), "no column 'agee'.*Did you mean 'age'"),
        (call("DENS", "age"), "no column function DENS.*Did you mean 'DENSE'"),
        (call("DENSE"), r"DENSE takes 1 to 4 arguments, and got 0: DENSE\(column\)"),
        (call("DENSE", "role"), "has 'a', and DENSE takes 1 number in"),
        (call("DENSE", "vec", 3, " "), "DENSE takes 3 numbers with ' ' between them"),
        (call("DENSE", "age", 2), "one number a row"),
        (call("DENSE", 5), "takes a column here, not 5"),
        (call("DENSE", "y"), "is the label"),
        (
            call("CATEGORY_ID", "age"),
            r"takes 2 to 3 arguments, and got 1: CATEGORY_ID\(column, size\)",
        ),
        (call("CATEGORY_ID", "age", 10), "values from 20 to 50.*takes 0 to 9"),
        (call("CATEGORY_ID", "role", 10), "takes whole numbers. Use CATEGORY_HASH or VOCABULARY"),
        (call("CATEGORY_ID", "pay", 10), "takes whole numbers. Use BUCKET"),
        (call("CATEGORY_ID", "age", 0), "size of CATEGORY_ID is 0"),
        (call("CATEGORY_ID", "age", True), "size of CATEGORY_ID is True"),
        (call("CATEGORY_HASH", "pay", 10), "takes text or whole numbers"),
        (call("SEQ_CATEGORY_ID", "age", 10), "takes text such as"),
        (call("SEQ_CATEGORY_ID", "role", 10), "has 'a', and SEQ_CATEGORY_ID takes whole numbers"),
        (
            call("SEQ_CATEGORY_ID", "ids", 2),
            "has '.*2.*', and SEQ_CATEGORY_ID with size 2 takes 0 to 1",
        ),
        (call("SEQ_CATEGORY_ID", "ids", 3, 5), "separator of SEQ_CATEGORY_ID is 5"),
        (call("BUCKET", "age", (3, 1)), "boundaries of BUCKET are .3, 1."),
        (call("BUCKET", "age", ()), "boundaries of BUCKET are"),
        (call("BUCKET", "role", (1,)), "BUCKET takes numbers"),
        (call("CROSS", ("role",), 10), "at least two columns"),
        (call("CROSS", ("role", "pay"), 10), r"BUCKET\(pay, 10\)"),
        (call("EMBEDDING", call("DENSE", "age"), 8), "takes a category, not DENSE"),
        (call("EMBEDDING", "pay", 8), "a category is needed"),
        (call("EMBEDDING", "role", 8, "max"), "combiner is 'max'"),
        (call("VOCABULARY", "role", "a"), r"VOCABULARY\(column, \[values\]\)"),
        (call("VOCABULARY", "role", ("a", "a")), "twice"),
        (call("VOCABULARY", "age", ("a",)), "'a' is no value"),
        (call("WEIGHTED_CATEGORY", call("SPARSE", "ids", 3)), "not supported.*SEQ_CATEGORY_ID"),
    ],
    ids=lambda value: value.function if isinstance(value, Call) else "",
)
def test_faults_point_to_the_call(made: Call, message: str) -> None:
    with pytest.raises(StatementError) as error:
        feature(made)
    assert re.search(message, str(error.value)), str(error.value)
    assert (error.value.start, error.value.end) == (PLACE.start, PLACE.end)


def test_a_fault_inside_points_to_the_inner_call() -> None:
    inner = Call("CATEGORY_ID", ("rle", 3), Span(30, 40))
    with pytest.raises(StatementError) as error:
        feature(call("EMBEDDING", inner, 4))
    assert error.value.start == 30


def test_an_unusable_column_that_is_named_points_to_its_place() -> None:
    rows = pa.table({"x": [[1], [2]], "y": [1.0, 2.0]})
    with pytest.raises(StatementError, match="cast it"):
        feature(call(None, "x"), rows)


def test_columns_that_are_not_named_are_derived_too() -> None:
    plan = plan_of(ROWS, "y", groups=clause(call("DENSE", "age")))
    assert [f.columns[0] for f in plan.features] == [
        "age",
        "role",
        "pay",
        "ids",
        "vec",
        "flag",
        "part",
    ]


def test_a_column_may_be_in_several_features() -> None:
    calls = clause(call("DENSE", "age"), call("BUCKET", "age", 2), call("CATEGORY_HASH", "age", 10))
    plan = plan_of(ROWS, "y", groups=calls)
    assert [f.name for f in plan.features[:3]] == ["age", "age_2", "age_3"]
    assert plan.column("age").dtype == "int64"


def test_targets_get_the_columns_that_are_said_for_them() -> None:
    groups = [
        ColumnGroup([call("CROSS", ("role", "age"), 20)], "linear"),
        ColumnGroup([call("DENSE", "age"), call("EMBEDDING", "role", 4)], "dnn"),
    ]
    plan = plan_of(ROWS, "y", groups=groups, targets=("linear", "dnn"))
    assert [(f.target, f.kind) for f in plan.features] == [
        ("linear", "cross"),
        ("dnn", "number"),
        ("dnn", "vocabulary"),
    ]
    assert {c.name for c in plan.columns} == {"age", "role"}
    assert plan.remarks == ("Not used, as no COLUMN clause names it: pay, ids, vec, flag, part.",)


def test_an_input_that_no_clause_is_for_gets_the_rest() -> None:
    groups = [ColumnGroup([call("CROSS", ("role", "age"), 20)], "linear_feature_columns")]
    plan = plan_of(ROWS, "y", groups=groups, targets=("linear", "dnn"))
    assert {f.target for f in plan.features if f.kind != "cross"} == {"dnn"}
    assert plan.targets == ("linear", "dnn")


def test_sqlflows_name_of_the_only_input_is_none() -> None:
    plan = plan_of(ROWS, "y", groups=[ColumnGroup([call("DENSE", "age")], "feature_columns")])
    assert plan.targets == (None,)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(StatementError, match=r"no input 'linaer'.*Did you mean 'linear'") as error:
        plan_of(
            ROWS,
            "y",
            groups=clause(call("DENSE", "age"), target="linaer"),
            targets=("linear", "dnn"),
        )
    assert error.value.start == PLACE.start


def test_the_target_is_what_an_error_points_to() -> None:
    groups = [ColumnGroup([call("DENSE", "age")], "deep", Span(40, 44))]
    for targets in (("linear", "dnn"), ()):
        with pytest.raises(StatementError, match="no input 'deep'") as error:
            plan_of(ROWS, "y", groups=groups, targets=targets)
        assert (error.value.start, error.value.end) == (40, 44)
    assert plan_of(ROWS, "y", groups=groups).targets == ("deep",)  # nobody knows


def test_a_clause_without_target_beside_one_with_is_refused() -> None:
    groups = [ColumnGroup([call("DENSE", "age")], "dnn"), ColumnGroup([call("DENSE", "pay")])]
    with pytest.raises(StatementError, match="Say it for all of them"):
        plan_of(ROWS, "y", groups=groups)
