"""The plot of a confusion matrix, from 2 classes to 1,000."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.reports.confusion import Confusion
from elasticdl.reports.drawing import draw, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["confusion_matrix"]

_MOST_NUMBERED = 20
_MOST_TICKS = 40
_LABELS = 1.6
"""Inches beside the cells."""


def confusion_matrix(confusion: Confusion) -> bytes:
    """The matrix, coloured by the share of the true class; with its numbers as long as they fit."""
    count = len(confusion.counts)
    width, height = (side := min(9.0, max(3.4, _LABELS + 0.45 * count))) + 0.9, side
    shares = confusion.counts / np.maximum(confusion.counts.sum(axis=1, keepdims=True), 1)
    places = range(0, count, math.ceil(count / _MOST_TICKS))
    labels = [shorten(confusion.names[i], 18) for i in places]
    short = max(map(len, labels)) <= 3

    def paint(figure: Figure, axes: Axes) -> None:
        _put_cells(figure, axes, shares)
        size = 9 if count <= _MOST_NUMBERED else 7
        turned = 0 if short and count <= 10 else 90
        axes.set_xticks(places, labels, rotation=turned, fontsize=size, parse_math=False)
        axes.set_yticks(places, labels, fontsize=size, parse_math=False)
        axes.set_xlabel("predicted", fontsize=10)
        axes.set_ylabel("true", fontsize=10)
        if count <= _MOST_NUMBERED:
            _put_numbers(axes, confusion.counts, shares, cell=(side - _LABELS) / count)

    # Only long names have to be measured.
    known = {
        "left": 0.6 / width,
        "right": 1 - 0.3 / width,
        "bottom": 0.6 / height,
        "top": 1 - 0.15 / height,
    }
    return draw(width, height, paint, known if short else None)


def _put_cells(figure: Figure, axes: Axes, shares: Any) -> None:
    from matplotlib.colors import PowerNorm

    # The root lets the few that went wrong be seen beside the many that did not.
    image = axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.5, 0, 1))
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.75, label="share of the true class")
    bar.set_ticks([0, 0.05, 0.2, 0.5, 1])
    bar.ax.tick_params(labelsize=8)


def _put_numbers(axes: Axes, counts: Any, shares: Any, cell: float) -> None:
    """The counts, as large as cells of so many inches allow."""
    size = min(12.0, cell * 72 * 0.8 / (0.65 * max(2, len(str(counts.max())))))
    for (row, column), value in np.ndenumerate(counts):
        if value:
            colour = "white" if shares[row, column] > 0.3 else "black"
            axes.text(
                column, row, str(value), ha="center", va="center", color=colour, fontsize=size
            )
