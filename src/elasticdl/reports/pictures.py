"""Which pictures a run's reports have, how their files are called, and what they show in words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from elasticdl.reports.confusion import Confusion
from elasticdl.reports.history import Curve, Event, curves_of
from elasticdl.reports.matrix import confusion_matrix
from elasticdl.reports.plots import MOST_PLOTS, distribution, learning_curve
from elasticdl.reports.section import Section
from elasticdl.reports.shown import shown
from elasticdl.reports.table import Statistics

__all__ = ["Plot", "draw_curves", "draw_section"]


@dataclass(frozen=True)
class Plot:
    """A drawn picture: its file's name in `plots/`, and what it shows in words."""

    file: str
    alt: str
    png: bytes = field(repr=False)


def draw_curves(epochs: Sequence[Event], exported: Event | None) -> list[Plot]:
    """The learning curves, the exported epoch marked."""
    epoch = exported.get("epoch") if exported else None
    marked = int(epoch) + 1 if epoch is not None else None
    return [
        Plot(
            f"learning_curve_{_file_name(curve.name, number)}.png",
            _curve_alt(curve),
            learning_curve(curve, marked),
        )
        for number, curve in enumerate(curves_of(epochs)[:MOST_PLOTS], 1)
    ]


def draw_section(section: Section) -> list[Plot]:
    """The distributions of a section, and last the confusion matrix of a classifier."""
    plots = []
    if section.table is not None:
        described = list(section.table.statistics().items())[:MOST_PLOTS]
        for number, (name, statistics) in enumerate(described, 1):
            file = f"{section.name}_{_file_name(name, number)}.png"
            drawn = distribution(name, section.table.values(name))
            plots.append(Plot(file, _distribution_alt(name, statistics), drawn))
    if section.confusion is not None:
        file = f"{section.name}_confusion_matrix.png"
        plots.append(
            Plot(file, _confusion_alt(section.confusion), confusion_matrix(section.confusion))
        )
    return plots


def _curve_alt(curve: Curve) -> str:
    parts = [f"Learning curve of {curve.name}, {len(curve.epochs)} epochs"]
    for label, values in (("training", curve.training), ("validation", curve.validation)):
        there = [value for value in values if math.isfinite(value)]
        if there:
            parts.append(f"{label} from {shown(there[0])} to {shown(there[-1])}")
    return "; ".join(parts)


def _distribution_alt(name: str, figures: Statistics) -> str:
    return (
        f"Histogram of {name}: mean {shown(figures.mean)}, median {shown(figures.q50)}, "
        f"from {shown(figures.min)} to {shown(figures.max)}"
    )


def _confusion_alt(confusion: Confusion) -> str:
    accuracy = shown(confusion.accuracy)
    return f"Confusion matrix of {len(confusion.names)} classes: accuracy {accuracy}; each class in the table below"


def _file_name(name: str, number: int) -> str:
    """The name of a metric in a file's name; the number keeps two of them apart."""
    return f"{number:02d}_{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_').lower()[:60]}".rstrip("_")
