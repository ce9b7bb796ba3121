"""The label of a table: classes or numbers, by the model's task, the column's type and its values."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from elasticdl.errors import DataError
from elasticdl.tabular.distinct import MAX_DISTINCT
from elasticdl.tabular.plan import Label
from elasticdl.tabular.profile import ColumnProfile
from elasticdl.tabular.types import CASTABLE

__all__ = ["CLASSIFICATION", "REGRESSION", "derive_label"]

CLASSIFICATION = "classification"
REGRESSION = "regression"
FEW_CLASSES = 20
"""So many whole numbers, each of them repeated, are taken for classes when nobody says."""
FAR = 2**14
"""So many deviations from zero, a float32 of 24 bits has too few of them left to tell values apart."""


def derive_label(column: ColumnProfile, num_rows: int, task: str | None) -> Label:
    """The label of a column.

    Raises:
      DataError: no model can be trained to predict it.
    """
    _check_there(column, num_rows)
    if task is None:
        task = _guess(column, num_rows)
    _check_varies(column, task)
    return _numbers(column) if task == REGRESSION else _classes(column)


def _check_there(column: ColumnProfile, num_rows: int) -> None:
    name = column.name
    if column.nulls:
        raise DataError(
            f"The label {name!r} is NULL in {column.nulls:,} of {num_rows:,} rows. Leave them out with "
            f"WHERE {_quoted(name)} IS NOT NULL."
        )
    if column.odd:
        raise DataError(
            f"The label {name!r} is NaN or infinite in {column.odd:,} of {num_rows:,} rows. Leave them out "
            "in the WHERE of the SELECT."
        )
    if column.family is None or column.family in ("binary", "null"):
        raise DataError(
            f"The label {name!r} is {column.type}, which cannot be predicted. Choose another column, or cast it "
            "to a number or text."
        )


def _guess(column: ColumnProfile, num_rows: int) -> str:
    if column.family in ("text", "boolean"):
        return CLASSIFICATION
    counts = column.distinct.counts
    few = counts is not None and len(counts) <= min(FEW_CLASSES, num_rows / 2)
    return CLASSIFICATION if column.family == "integer" and few else REGRESSION


def _check_varies(column: ColumnProfile, task: str) -> None:
    counts = column.distinct.counts
    if counts is not None and len(counts) == 1:
        raise DataError(
            f"The label {column.name!r} has the same value in all rows, {next(iter(counts))!r}: there is nothing "
            "to learn. Select rows with different values, or name another column with LABEL."
        )
    if task not in (CLASSIFICATION, REGRESSION):
        raise DataError(f"The task {task!r} is neither {CLASSIFICATION} nor {REGRESSION}.")


def _is_time(column: ColumnProfile) -> bool:
    return column.family == "time" or pa.types.is_time(column.type)


def _numbers(column: ColumnProfile) -> Label:
    if column.family not in CASTABLE or _is_time(column):
        raise DataError(
            f"The label {column.name!r} is {column.type}, and a regression predicts numbers. Name a column of "
            "numbers with LABEL, cast it, or train a classifier such as classifier.DNN."
        )
    moments = column.moments
    std = math.sqrt(moments.variance)
    if not math.isfinite(std) or max(-moments.min, moments.max) > 1e37:
        raise DataError(
            f"The label {column.name!r} has values up to {max(-moments.min, moments.max):g}, too large to "
            "compute with. Predict its logarithm."
        )
    return Label(
        column.name,
        REGRESSION,
        "float64" if max(-moments.min, moments.max) > FAR * std else "float32",
        source=str(column.type),
        mean=moments.mean,
        std=std or 1.0,
    )


def _classes(column: ColumnProfile) -> Label:
    counts = column.distinct.counts
    if counts is None:
        raise DataError(
            f"The label {column.name!r} has more than {MAX_DISTINCT:,} different values, too many for classes. "
            "Train a regressor such as regressor.DNN, or name another column with LABEL."
        )
    if _is_time(column):
        raise DataError(
            f"The label {column.name!r} is {column.type}, which is no class. Cast it to text, or extract a part "
            "of it such as the month or the hour."
        )
    if column.family == "number" and any(value != int(value) for value in counts):
        shown = next(value for value in counts if value != int(value))
        raise DataError(
            f"The label {column.name!r} has values such as {shown!r}, which are no classes. Train a regressor such "
            "as regressor.DNN, or cast the label to text."
        )
    if not column.fits_int64:
        raise DataError(
            f"The label {column.name!r} is {column.type}, and has whole numbers beyond 64 bits, which are no classes. "
            "Cast it to text."
        )
    values: list[Any] = sorted(counts)
    dtype = "string" if column.family == "text" else "int64"
    return Label(column.name, CLASSIFICATION, dtype, tuple(values), str(column.type))


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'
