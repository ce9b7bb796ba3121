"""The curves of runs as a picture: a panel for the loss and one for each metric, a colour for each run."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elasticdl.errors import InvalidValue, MissingPackage
from elasticdl.reports.drawing import shorten
from elasticdl.runtime.dashboard.runs import Run
from elasticdl.runtime.dashboard.series import series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curves"]

# Of Okabe and Ito's palette: told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
POINTS = 2000
MOST_PANELS = 12
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
"""The same curves give the same bytes, whoever draws them and when."""

Panel = dict[tuple[int, bool], list[list[float]]]
"""By the run's number and whether it is of the validation: the points of a curve."""


def draw_curves(runs: Sequence[Run], format: str, *, is_log: bool = False) -> bytes:
    """The picture, as `png`, `svg` or `pdf`.

    Raises:
      InvalidValue: none of the runs has a curve yet.
      MissingPackage: matplotlib is not installed.
    """
    panels = _panels(runs)
    if not panels:
        names = ", ".join(run.name for run in runs)
        raise InvalidValue(
            f"There is nothing to draw of {names}: no step is told of yet. Wait for the first --log_loss_steps."
        )
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackage(
            "To draw curves needs matplotlib, which is not installed. Install it with: pip install matplotlib"
        ) from error
    across = min(len(panels), 2 if len(panels) < 5 else 3)
    down = math.ceil(len(panels) / across)
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "svg.hashsalt": "elasticdl"}):
        figure = Figure(figsize=(5 * across, 3.4 * down + 0.4), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False)
        for axes, (name, panel) in zip(grid.flat, panels.items(), strict=False):
            _paint(axes, name, panel, is_log=is_log and name == "loss")
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        _explain(figure, runs, panels)
        made = io.BytesIO()
        figure.savefig(made, format=format, metadata=_METADATA[format])
    return made.getvalue()


def _panels(runs: Sequence[Run]) -> dict[str, Panel]:
    """The loss first."""
    panels: dict[str, Panel] = {}
    for number, run in enumerate(runs):
        for one in series(run.digest, points=POINTS):
            if one["kind"] in ("loss", "metric") and one["points"]:
                key = one["key"]
                panel = panels.setdefault(key.removeprefix("val_"), {})
                panel[number, key.startswith("val_")] = one["points"]
    names = sorted(panels, key=lambda name: name != "loss")[:MOST_PANELS]
    return {name: panels[name] for name in names}


def _paint(axes: Axes, name: str, panel: Panel, *, is_log: bool) -> None:
    for (number, is_validation), points in panel.items():
        axes.plot(
            [point[0] for point in points],
            [point[2] for point in points],
            color=COLOURS[number % len(COLOURS)],
            linestyle="--" if is_validation else "-",
            marker="o" if len(points) <= 30 else None,
            markersize=3,
            linewidth=1.5,
        )
    if is_log and all(point[2] > 0 for points in panel.values() for point in points):
        axes.set_yscale("log")
    axes.set_title(shorten(name), fontsize=11, parse_math=False)
    axes.set_xlabel("step", fontsize=9)
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def _explain(figure: Any, runs: Sequence[Run], panels: dict[str, Panel]) -> None:
    from matplotlib.lines import Line2D

    # A name with two dollar signs is no formula.
    names = [shorten(run.name).replace("$", r"\$") for run in runs]
    handles = [
        Line2D([], [], color=COLOURS[n % len(COLOURS)], label=name) for n, name in enumerate(names)
    ]
    kinds = {is_validation for panel in panels.values() for _, is_validation in panel}
    if kinds == {True, False}:
        handles += [
            Line2D([], [], color="black", label="training"),
            Line2D([], [], color="black", linestyle="--", label="validation"),
        ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
