"""The plots of a report: distributions, confusion matrices, learning curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.reports.confusion import Confusion
from elasticdl.reports.drawing import BLUE, GREY, ORANGE, draw, shorten
from elasticdl.reports.history import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MOST_PLOTS", "confusion_matrix", "distribution", "learning_curve"]

MOST_PLOTS = 12
"""Distributions and curves that are drawn; a page of hundreds is read by nobody."""

_MOST_BINS = 50
_LARGEST = 1e100
"""Beyond it an axis has no room between its ends."""
_MARGINS = {"left": 0.16, "right": 0.97, "bottom": 0.25, "top": 0.9}
_MOST_NUMBERED = 20
_MOST_TICKS = 40


def distribution(name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> bytes:
    """A histogram of a column with its mean and median marked; what is not finite is left out, and said."""
    finite = values[np.abs(values) < _LARGEST]
    left_out = len(values) - len(finite)

    def paint(figure: Figure, axes: Axes) -> None:
        if not len(finite):
            axes.text(0.5, 0.5, "no finite values", ha="center", transform=axes.transAxes)
            axes.set(xticks=[], yticks=[])
        else:
            counts, edges = _histogram(finite)
            axes.stairs(counts, edges, fill=True, color=BLUE, alpha=0.55)
            mean, median = float(finite.mean()), float(np.median(finite))
            axes.axvline(mean, color=ORANGE, lw=1.8, label=f"mean {mean:.4g}")
            axes.axvline(median, color="black", lw=1.8, ls="--", label=f"median {median:.4g}")
            figure.legend(loc="lower center", ncols=2, fontsize=8, frameon=False)
        axes.set_ylabel("data points", fontsize=9)
        if left_out:
            axes.set_xlabel(f"{left_out} without a finite value", fontsize=9)
        axes.set_title(shorten(name), fontsize=11, parse_math=False)

    return draw(4.6, 3.2, paint, _MARGINS)


def confusion_matrix(confusion: Confusion) -> bytes:
    """The matrix, coloured by the share of the true class; with its numbers as long as they fit."""
    count = len(confusion.counts)
    side = min(9.0, max(3.4, 1.6 + 0.45 * count))
    totals = confusion.counts.sum(axis=1, keepdims=True)
    shares = confusion.counts / np.maximum(totals, 1)

    def paint(figure: Figure, axes: Axes) -> None:
        from matplotlib.colors import PowerNorm

        # The root lets the few that went wrong be seen beside the many that did not.
        image = axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.5, 0, 1))
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, shrink=0.75, label="share of the true class")
        bar.set_ticks([0, 0.05, 0.2, 0.5, 1])
        bar.ax.tick_params(labelsize=8)
        every = math.ceil(count / _MOST_TICKS)
        places = range(0, count, every)
        labels = [shorten(confusion.names[i], 18) for i in places]
        size = 9 if count <= _MOST_NUMBERED else 7
        upright = count > 10 or max(map(len, labels)) > 3
        axes.set_xticks(
            places, labels, rotation=90 if upright else 0, fontsize=size, parse_math=False
        )
        axes.set_yticks(places, labels, fontsize=size, parse_math=False)
        axes.set_xlabel("predicted", fontsize=10)
        axes.set_ylabel("true", fontsize=10)
        if count <= _MOST_NUMBERED:
            _put_numbers(axes, confusion.counts, shares, cell=(side - 1.6) / count)

    return draw(side + 0.9, side, paint)


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
        axes.set_title(shorten(curve.name), fontsize=11, parse_math=False)
        axes.set_xlabel("epoch", fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        room = max(0.5, 0.03 * len(curve.epochs))
        axes.set_xlim(min(curve.epochs) - room, max(curve.epochs) + room)
        axes.margins(y=0.12)
        axes.grid(axis="y", color="#dddddd", lw=0.7)
        axes.set_axisbelow(True)
        figure.legend(loc="lower center", ncols=3, fontsize=8, frameon=False)

    return draw(4.6, 3.2, paint, _MARGINS)


def _histogram(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Any, Any]:
    bins = int(min(_MOST_BINS, max(10, math.sqrt(len(values)))))
    try:
        return np.histogram(values, bins)
    except ValueError:  # so close together that floats have no bins between them
        low, high = float(values.min()), float(values.max())
        return np.array([len(values)]), np.array([low, high if high > low else low + 1])


def _put_numbers(axes: Axes, counts: Any, shares: Any, cell: float) -> None:
    """The counts, as large as cells of so many inches allow."""
    size = min(12.0, cell * 72 * 0.8 / (0.65 * max(2, len(str(counts.max())))))
    for (row, column), value in np.ndenumerate(counts):
        if value:
            colour = "white" if shares[row, column] > 0.3 else "black"
            axes.text(
                column, row, str(value), ha="center", va="center", color=colour, fontsize=size
            )
