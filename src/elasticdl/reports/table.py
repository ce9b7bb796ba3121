"""The table of an evaluation: a row a data point, a column an evaluation function.

A table keeps ids and one float a function and row. Labels and predictions are not kept, so that
millions of data points fit into memory.
"""

from __future__ import annotations

import reprlib
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from elasticdl.errors import ContractError, UnknownName, nearest
from elasticdl.reports.points import Id, arrays_of, copy_of, ids_of, number_of, points_of

__all__ = ["ID_COLUMN", "PointTable", "Statistics"]

ID_COLUMN = "data_id"

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Statistics:
    """A column in figures, as pandas' `describe` has them; those that are missing are left out."""

    count: int
    mean: float
    std: float
    min: float
    q25: float
    q50: float
    q75: float
    max: float
    missing: int

    NAMES = ("count", "mean", "std", "min", "25%", "50%", "75%", "max", "missing")

    def row(self) -> list[float]:
        return [getattr(self, field.name) for field in fields(self)]


class PointTable:
    """Calls the evaluation functions for each data point and keeps what they answer.

    >>> table = PointTable({"error": lambda y_true, y_pred: abs(y_true - y_pred)})
    >>> table.add([b"a.png", b"b.png"], np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    >>> table.ids, table.means()
    (['a.png', 'b.png'], {'error': 0.25})
    """

    def __init__(self, functions: Mapping[str, Callable[[Any, Any], Any]]) -> None:
        if ID_COLUMN in functions:
            raise ContractError(
                f"An evaluation function is called {ID_COLUMN!r}, as the column of the data ids is. "
                "Give it another name."
            )
        self._functions = dict(functions)
        self._values = {name: array("d") for name in self._functions}
        self._ids: list[Id] = []

    def add(self, ids: Any, labels: Any, predictions: Any) -> None:
        """Add the data points of a batch.

        Args:
            ids: the data ids: text, bytes or numbers; a list, an array or a tensor.
            labels: an array or tensor with the batch first, or a dict or tuple of them.
            predictions: likewise.

        Raises:
            ContractError: a function answered with something else than a number.
            DataError: there are more or fewer labels or predictions than ids.
        """
        new = ids_of(ids)
        labels, predictions = arrays_of(labels), arrays_of(predictions)
        columns = [
            self._answers(name, new, copy_of(labels), copy_of(predictions))
            for name in self._functions
        ]
        for name, column in zip(self._functions, columns, strict=True):
            self._values[name].extend(column)
        self._ids += new

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def columns(self) -> list[str]:
        return list(self._functions)

    @property
    def ids(self) -> list[Id]:
        return list(self._ids)

    @property
    def duplicates(self) -> int:
        """How many rows have an id that an earlier row has too."""
        return len(self._ids) - len({str(one) for one in self._ids})

    def repeated_ids(self, most: int = 3) -> list[str]:
        """Some of the ids that more than one row has, the most frequent first."""
        counts = Counter(map(str, self._ids)).most_common(most)
        return [one for one, count in counts if count > 1]

    def values(self, name: str) -> Numbers:
        """A column, in the order of the rows."""
        if name not in self._values:
            raise UnknownName(f"No evaluation function {name!r}. {nearest(name, self._values)}")
        return np.array(self._values[name], dtype=np.float64)

    def higher_is_better(self, name: str) -> bool | None:
        """What a function says of itself by an attribute of this name."""
        better = getattr(self._functions[name], "higher_is_better", None)
        return None if better is None else bool(better)

    def means(self) -> dict[str, float]:
        """The mean of each column, without what is NaN; NaN when nothing else is there."""
        return {name: column.mean for name, column in self.statistics().items()}

    def statistics(self) -> dict[str, Statistics]:
        return {name: _describe(self.values(name)) for name in self._functions}

    def _answers(self, name: str, ids: list[Id], labels: Any, predictions: Any) -> list[float]:
        function = self._functions[name]
        truths = points_of(labels, len(ids), "labels")
        guesses = points_of(predictions, len(ids), "predictions")
        answers: list[Any] = []
        try:
            for y_true, y_pred in zip(truths, guesses, strict=True):
                answers.append(function(y_true, y_pred))
        except Exception as error:
            error.add_note(
                f"It was raised by the evaluation function {name!r} for the data point {ids[len(answers)]!r}."
            )
            raise
        numbers = list(map(number_of, answers))
        if None in numbers:
            at = numbers.index(None)
            raise ContractError(_no_number(name, ids[at], answers[at]))
        return numbers  # type: ignore[return-value]  # there is no None in it


def _no_number(name: str, data_id: Id, answer: Any) -> str:
    got = type(answer).__name__
    if (shape := getattr(answer, "shape", None)) is not None:
        got = f"{got} of shape {tuple(shape)}"
    elif isinstance(answer, int):
        got = "a number that is too large"
    else:
        got = "None" if answer is None else f"{got} {reprlib.repr(answer)}"
    return (
        f"The evaluation function {name!r} returned {got} for the data point {data_id!r}. "
        "Return one number for one data point, for example float(loss)."
    )


def _describe(values: Numbers) -> Statistics:
    there = values[~np.isnan(values)]
    missing = len(values) - len(there)
    if not len(there):
        nan = float("nan")
        return Statistics(0, nan, nan, nan, nan, nan, nan, nan, missing)
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # an infinite value makes infinite or no figures
        q25, q50, q75 = map(float, np.percentile(there, [25, 50, 75]))
        std = float(there.std(ddof=1)) if len(there) > 1 else float("nan")
        mean, low, high = float(there.mean()), float(there.min()), float(there.max())
    return Statistics(len(there), mean, std, low, q25, q50, q75, high, missing)
