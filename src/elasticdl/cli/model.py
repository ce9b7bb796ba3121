"""`elasticdl model`: look into a trained model."""

from __future__ import annotations

from elasticdl.cli.lazy import LazyGroup

__all__ = ["model"]

model = LazyGroup(
    name="model",
    help="Look into a trained model.",
    lazy={"show": ("elasticdl.cli.model_show:show", "Show what a trained model is.")},
)
