"""Matplotlib, late and quietly: figures of our own, not the user's settings, and PNG bytes."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from elasticdl.errors import MissingPackage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREY", "ORANGE", "draw", "shorten", "warm_up"]

# Of Okabe and Ito's palette: told apart with any kind of colour vision.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"

_DPI = 120
_LOCK = threading.Lock()  # matplotlib's settings are the process's


def warm_up() -> threading.Thread:
    """Import what the reports need in the background: matplotlib takes most of a second."""
    thread = threading.Thread(target=_import_quietly, name="elasticdl-reports", daemon=True)
    thread.start()
    return thread


def draw(
    width: float,
    height: float,
    paint: Callable[[Figure, Axes], None],
    margins: Mapping[str, float] | None = None,
) -> bytes:
    """A PNG of so many inches; `paint` puts something on its axes.

    Without `margins` they are measured, which takes as long as the drawing.

    Raises:
        MissingPackage: matplotlib is not installed.
    """
    _load()
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _LOCK, matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a style that the user's code has set is for the user's plots
        # A name in a script that the font lacks is drawn as boxes; the page has it as text.
        warnings.filterwarnings("ignore", message="Glyph")
        layout: Any = "constrained" if margins is None else None
        figure = Figure(figsize=(width, height), dpi=_DPI, layout=layout)
        canvas: Any = FigureCanvasAgg(figure)
        axes = figure.subplots(gridspec_kw=dict(margins or {}))
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        paint(figure, axes)
        png = io.BytesIO()
        # Not figure.savefig, which draws twice. Charts are flat: squeezing them harder gains little.
        canvas.print_png(png, metadata={"Software": None}, pil_kwargs={"compress_level": 4})
    return png.getvalue()


def shorten(name: str, width: int = 48) -> str:
    """A name in one line that fits beside or above a plot."""
    line = " ".join(name.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _load() -> None:
    try:
        import matplotlib.backends.backend_agg
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingPackage(
            "The plots of a report need matplotlib, which is not installed. Install it with: "
            "pip install 'elasticdl[abstractions]'"
        ) from error


def _import_quietly() -> None:
    import contextlib

    with contextlib.suppress(ImportError):
        import jinja2
        import matplotlib.backends.backend_agg
        import matplotlib.figure
        import matplotlib.font_manager

        _: Any = (jinja2, matplotlib.font_manager.fontManager, matplotlib.figure)
