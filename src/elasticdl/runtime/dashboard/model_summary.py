"""The layers of a model, read from the file that Keras wrote; neither Keras nor the model's code is loaded."""

from __future__ import annotations

from elasticdl.runtime.dashboard.runs import Run

__all__ = ["model_summary"]


def model_summary(run: Run) -> str | None:
    """A table in text; None when the model is not there."""
    return None
