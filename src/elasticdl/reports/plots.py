"""The plots of a report: distributions and learning curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.reports.drawing import BLUE, GREY, ORANGE, draw, shorten
from elasticdl.reports.history import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MOST_PLOTS", "distribution", "learning_curve"]

Values = np.ndarray[Any, np.dtype[np.float64]]

MOST_PLOTS = 12
"""Distributions and curves that are drawn; a page of hundreds is read by nobody."""

_MOST_BINS = 50
_LARGEST = 1e100
"""Beyond it an axis has no room between its ends."""
_TITLE = 1.02
"""Where a title stands: given, it need not be found by measuring all the rest."""
_MARGINS = {"left": 0.16, "right": 0.97, "bottom": 0.25, "top": 0.9}


def distribution(name: str, values: Values) -> bytes:
    """A histogram of a column with its mean and median marked; what is not finite is left out, and said."""
    finite = values[np.abs(values) < _LARGEST]
    left_out = len(values) - len(finite)

    def paint(figure: Figure, axes: Axes) -> None:
        if not len(finite):
            axes.text(0.5, 0.5, "no finite values", ha="center", transform=axes.transAxes)
            axes.set(xticks=[], yticks=[])
        else:
            _put_bars(axes, finite)
            mean, median = float(finite.mean()), float(np.median(finite))
            axes.axvline(mean, color=ORANGE, lw=1.8, label=f"mean {mean:.4g}")
            axes.axvline(median, color="black", lw=1.8, ls="--", label=f"median {median:.4g}")
            figure.legend(loc="lower center", ncols=2, fontsize=8, frameon=False)
        axes.set_ylabel("data points", fontsize=9)
        if left_out:
            axes.set_xlabel(f"{left_out} without a finite value", fontsize=9)
        axes.set_title(shorten(name), y=_TITLE, fontsize=11, parse_math=False)

    return draw(4.6, 3.2, paint, _MARGINS)


def learning_curve(curve: Curve, exported: int | None = None) -> bytes:
    """Training and validation over the epochs; `exported` is the epoch to mark, counted from 1."""

    def paint(figure: Figure, axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        lines = (
            ("training", curve.training, BLUE, "o--"),
            ("validation", curve.validation, ORANGE, "s-"),
        )
        for label, values, colour, style in lines:
            if np.isfinite(values).any():
                marker = 3.5 if len(values) <= 60 else 0
                axes.plot(curve.epochs, values, style, color=colour, ms=marker, lw=1.6, label=label)
        if exported is not None:
            axes.axvline(exported, color=GREY, lw=1.2, ls=":", label="exported epoch")
        axes.set_title(shorten(curve.name), y=_TITLE, fontsize=11, parse_math=False)
        axes.set_xlabel("epoch", fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        room = max(0.5, 0.03 * len(curve.epochs))
        axes.set_xlim(min(curve.epochs) - room, max(curve.epochs) + room)
        axes.margins(y=0.12)
        axes.grid(axis="y", color="#dddddd", lw=0.7)
        axes.set_axisbelow(True)
        figure.legend(loc="lower center", ncols=3, fontsize=8, frameon=False)

    return draw(4.6, 3.2, paint, _MARGINS)


def _put_bars(axes: Axes, values: Values) -> None:
    """The bars of a histogram; whole numbers have a bar each."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    low, high = float(values.min()), float(values.max())
    if high - low < _MOST_BINS and (values == np.round(values)).all():
        numbers, counts = np.unique(values, return_counts=True)
        axes.bar(numbers, counts, width=0.8, color=BLUE, alpha=0.55)
        axes.set_xlim(low - 0.8, high + 0.8)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        return
    bins = int(min(_MOST_BINS, max(10, math.sqrt(len(values))))) if high > low else 1
    try:
        heights, edges = np.histogram(values, bins)
    except ValueError:  # so close together that floats have no bins between them
        heights, edges = np.array([len(values)]), np.array([low, high])
    axes.stairs(heights, edges, fill=True, color=BLUE, alpha=0.55)
