"""Tables as CSV files: whatever names hold, pandas reads back what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from upath import UPath

from elasticdl.reports import PointTable
from elasticdl.reports.files import write_table
from elasticdl.reports.worst import Direction, more_is_worse, worst_cases

NAMES = ['a, "b"', "line\nbreak", "carriage\rreturn", "\u00fc\u6a21", " space ", "=1+1", ""]


def table_of(values: Any, name: str = "loss", **more: Any) -> PointTable:
    table = PointTable({name: lambda y_true, y_pred: y_pred} | more)
    table.add([f"p{i}" for i in range(len(values))], np.zeros(len(values)), np.array(values))
    return table


def read(path: UPath) -> pd.DataFrame:
    with path.open("rb") as file:
        return pd.read_csv(file, keep_default_na=False, dtype=str)


@pytest.mark.parametrize("directory", ["reports/deep", "memory://reports/deep"])
def test_odd_names_are_read_back_as_they_were(directory: str) -> None:
    table = PointTable({name: lambda y_true, y_pred: y_pred for name in NAMES[:-1]})
    values = np.random.default_rng(0).random(len(NAMES))
    table.add(NAMES, np.zeros(len(NAMES)), values)

    report, summary, worst = write_table(UPath(directory), "eval_report", table)

    assert [path.name for path in (report, summary, worst)] == [
        "eval_report.csv",
        "eval_report_summary.csv",
        "eval_report_worst_cases.csv",
    ]
    frame = read(report)
    assert list(frame.columns) == ["data_id", *NAMES[:-1]]
    assert frame["data_id"].tolist() == NAMES
    assert frame["=1+1"].map(float).tolist() == values.tolist()
    assert read(summary)["metric"].tolist() == NAMES[:-1]
    assert b"\r\n" not in report.read_bytes()


def test_the_summary_is_what_pandas_describes(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=100)
    values[7] = np.nan
    report, summary, _ = write_table(UPath(tmp_path), "r", table_of(values))

    described = pd.read_csv(report)["loss"].describe()
    row = pd.read_csv(summary).set_index("metric").loc["loss"]
    assert row.drop(["missing", "worst"]).to_dict() == pytest.approx(described.to_dict())
    assert (row["missing"], row["worst"]) == (1, "largest")
    assert report.read_text().splitlines()[8] == "p7,"


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("loss", ["p1", "p3", "p4", "p2", "p0"]),
        ("accuracy", ["p1", "p3", "p0", "p2", "p4"]),
        ("volume", ["p1", "p3", "p4", "p2", "p0"]),
    ],
)
def test_worst_cases_come_first_and_before_them_those_without_a_value(
    tmp_path: Path, name: str, order: list[str]
) -> None:
    values = [-np.inf, np.nan, 2.0, np.nan, np.inf]
    worst = write_table(UPath(tmp_path), "r", table_of(values, name))[2]
    assert read(worst)["data_id"].tolist() == order


@pytest.mark.parametrize("name", ["loss", "accuracy", "volume"])
@pytest.mark.parametrize(("better", "first"), [(True, "p0"), (False, "p2")])
def test_a_function_may_say_what_is_better(
    tmp_path: Path, name: str, better: bool, first: str
) -> None:
    def function(y_true: Any, y_pred: Any) -> Any:
        return y_pred

    function.higher_is_better = better  # type: ignore[attr-defined]
    table = PointTable({name: function})
    table.add(["p0", "p1", "p2"], np.zeros(3), np.arange(3))
    _, summary, worst = write_table(UPath(tmp_path), "r", table)
    assert read(worst)["data_id"][0] == first
    assert read(summary)["worst"].tolist() == ["smallest" if better else "largest"]


def test_at_most_a_thousand_worst_cases(tmp_path: Path) -> None:
    report, _, worst = write_table(UPath(tmp_path), "r", table_of(np.arange(2500.0)))
    assert (len(read(report)), len(read(worst))) == (2500, 1000)
    assert read(worst)["data_id"].tolist()[:2] == ["p2499", "p2498"]


def test_worst_cases_by_another_function() -> None:
    table = table_of([1.0, 2.0, 3.0], iou=lambda y_true, y_pred: y_pred)
    worst = worst_cases(table, "iou", most=2)
    assert worst is not None
    assert (list(worst.rows), worst.direction) == ([0, 1], Direction(False, "name"))
    assert worst_cases(PointTable({})) is None


def test_a_table_without_functions_or_rows(tmp_path: Path) -> None:
    table = PointTable({})
    table.add(["a"], np.zeros(1), np.zeros(1))
    assert write_table(UPath(tmp_path), "r", table)[0].read_text() == "data_id\na\n"
    assert write_table(UPath(tmp_path), "r", PointTable({"e": abs}))[0].read_text() == "data_id,e\n"  # type: ignore[dict-item]


def test_what_is_worse_is_told_by_the_name() -> None:
    more = (
        "loss val_loss MSE meanabsoluteerror RMSE_mm error_rate cross-entropy sparse_categorical_ce "
        "SparseCategoricalCrossentropy dice_loss hausdorffDistance accuracy_error inaccuracy incorrect "
        "negative_log_likelihood NegLogProb uncertainty"
    )
    less = (
        "accuracy Acc IoU mean_iou Dice f1 F1Score f1_score AUC binaryaccuracy recall top1_precision R2 SSIM "
        "confidence conf max_prob probability correct is_correct hit precision log_likelihood"
    )
    assert {name for name in more.split() if more_is_worse(name) is not True} == set()
    assert {name for name in less.split() if more_is_worse(name) is not False} == set()


@pytest.mark.parametrize("name", ["volume", "indices", "place", "", "\u6a21"])
def test_of_these_the_name_does_not_tell(name: str) -> None:
    assert more_is_worse(name) is None
