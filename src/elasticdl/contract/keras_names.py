"""The names that Keras knows losses, metrics and optimizers by, to find the one that was meant."""

from __future__ import annotations

from typing import Any, Literal

__all__ = ["Kind", "keras_names"]

Kind = Literal["losses", "metrics", "optimizers"]

_NO_NAMES = {
    *("deserialize", "get", "legacy", "schedules", "serialize"),
    *("Loss", "LossScaleOptimizer", "MeanMetricWrapper", "Metric", "Optimizer", "OptimizerMap"),
}
_SHORT = {"mae", "mape", "mse", "msle"}


def keras_names(kind: Kind) -> list[str]:
    """Losses and optimizers in small letters, as most people write them; metrics in both ways."""
    import keras

    module = getattr(keras, kind)
    found = {name for name in dir(module) if name[0].isalpha()} - _NO_NAMES | _SHORT
    if kind == "losses":
        found = {name for name in found if name.islower()}
    if kind == "optimizers":
        found = {name.lower() for name in found}
    return sorted(name for name in found if _is_taken(module, name))


def _is_taken(module: Any, name: str) -> bool:
    """Whether the name alone will do: some need arguments, and some are no names at all."""
    try:
        module.get(name)
    except (LookupError, TypeError, ValueError):
        return False
    return True
