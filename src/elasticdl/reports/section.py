"""What one evaluation found: the part of a report on validation or test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from upath import UPath

from elasticdl.reports.confusion import Confusion
from elasticdl.reports.table import PointTable

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """An evaluation: the data points, the confusion matrix of a classifier, and the model's own metrics."""

    name: str
    table: PointTable | None = None
    confusion: Confusion | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    files: Sequence[UPath] = ()
    worst_by: str | None = None

    def numbers(self) -> dict[str, float]:
        """The model's metrics and the means of the functions, by name.

        A function that is named as a metric is keeps its name with ` (mean)` after it.
        """
        numbers = {name: _float(value) for name, value in self.metrics.items()}
        for name, mean in (self.table.means() if self.table is not None else {}).items():
            numbers[f"{name} (mean)" if name in self.metrics else name] = mean
        return numbers


def _float(value: float | None) -> float:
    return float("nan") if value is None else float(value)
