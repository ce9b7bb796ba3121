"""The best version of a model so far, by an evaluation metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from elasticdl.errors import UnknownName, near_match, nearest

__all__ = ["Best"]

_PREFIX = "best/"
_LESS_IS_BETTER = ("loss", "error", "mae", "mse", "rmse", "mape", "perplexity", "divergence")

Tensors = dict[str, Any]


class Best:
    """Keeps a copy of the parameters that gave the best value of a metric.

    Args:
      metric: its name in the evaluation, with or without `val_` in front; or with `by_epoch` its name in what an
        epoch logs, where `val_` tells the evaluation from the training.
      mode: "max", "min" or "auto", which goes by the name.
    """

    def __init__(self, metric: str, mode: str = "auto", *, by_epoch: bool = False) -> None:
        self.by_epoch = by_epoch
        self.metric = metric if by_epoch else metric.removeprefix("val_")
        if mode == "auto":
            mode = "min" if any(word in self.metric.lower() for word in _LESS_IS_BETTER) else "max"
        self._sign = 1.0 if mode == "max" else -1.0
        self.value: float | None = None
        self.step = self.epoch = 0
        self.metrics: dict[str, float] = {}
        self.parameters: Tensors = {}

    def check(self, names: Iterable[str]) -> None:
        """Refuse, before the training, a metric that the evaluation does not give."""
        known = list(names)
        if self.metric not in known:
            raise UnknownName(f"The export metric {self.metric!r} {self._advice(known)}")

    def _advice(self, known: list[str]) -> str:
        if not self.by_epoch:
            return f"is not a metric of the evaluation. {nearest(self.metric, known)}"
        match = near_match(self.metric, known)
        meant = f"Did you mean {match!r}? " if match else ""
        return f"is never logged. {meant}Logged are: {', '.join(known)}."

    def offer(
        self, metrics: Mapping[str, float], step: int, epoch: int, parameters: Callable[[], Tensors]
    ) -> None:
        """Take a copy when this version is better than all before; NaN never is."""
        self.check(metrics)
        value = metrics[self.metric]
        if value != value or (self.value is not None and self._gain(value) <= 0):
            return
        self.value, self.step, self.epoch, self.metrics = value, step, epoch, dict(metrics)
        self.parameters = parameters()

    def _gain(self, value: float) -> float:
        assert self.value is not None
        return self._sign * (value - self.value)

    def __str__(self) -> str:
        name = self.metric if self.by_epoch else f"val_{self.metric}"
        return f"best {name}={self.value:.6g} at step {self.step}"

    def snapshot(self) -> tuple[Tensors, dict[str, Any]]:
        """What a checkpoint keeps of it."""
        tensors = {f"{_PREFIX}{name}": value for name, value in self.parameters.items()}
        about = {"value": self.value, "step": self.step, "epoch": self.epoch}
        rule = {"metric": self.metric, "sign": self._sign}
        return tensors, {**rule, "metrics": self.metrics, **about}

    def restore(self, tensors: Mapping[str, Any], state: Mapping[str, Any] | None) -> bool:
        """Take over the best so far, if it is one by the same metric and mode; says whether it is."""
        if state is None or (state["metric"], state["sign"]) != (self.metric, self._sign):
            return False
        self.value, self.step, self.metrics = state["value"], state["step"], dict(state["metrics"])
        self.epoch = state["epoch"]
        self.parameters = {
            name.removeprefix(_PREFIX): value
            for name, value in tensors.items()
            if name.startswith(_PREFIX)
        }
        return True
