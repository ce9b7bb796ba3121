"""The clock of the loop: how fast it goes, how many steps fit into a call, what is due."""

from __future__ import annotations

import time
from typing import Any

from elasticdl.engine.step import Outcome

__all__ = ["Pace"]

CALL_S = 0.5
"""A graph call should take no longer: the progress bar moves and Ctrl-C is heard in between."""


class Pace:
    """Measures steps. It decides only how work is cut into calls, never what is computed."""

    def __init__(self, log_steps: int) -> None:
        self._log_steps = log_steps
        self._started = self._called = self._told = time.monotonic()
        self._last_evaluation = float("-inf")
        self._step_s: float | None = None
        self._steps = self._examples = 0
        self._busy_s = self._loss_sum = 0.0
        self.loss = float("nan")
        self.examples_per_s = 0.0

    def steps_ahead(self) -> int:
        """How many steps the next call may take."""
        self._called = time.monotonic()
        if self._step_s is None:
            return 1  # the first call traces and compiles: learn from a single step
        return max(1, int(CALL_S / max(self._step_s, 1e-6)))

    def record(self, outcome: Outcome) -> None:
        now = time.monotonic()
        step_s = (now - self._called) / outcome.steps
        is_first = self._step_s is None
        self._step_s = min(step_s, CALL_S) if is_first else _smooth(self._step_s, step_s)
        wall_s, self._told = now - self._told, now
        self._busy_s += wall_s
        self._steps += outcome.steps
        self._examples += outcome.examples
        self._loss_sum += outcome.loss_sum
        self.loss = outcome.loss
        rate = outcome.examples / max(wall_s, 1e-9)
        self.examples_per_s = rate if is_first else _smooth(self.examples_per_s, rate)

    @property
    def has_steps(self) -> bool:
        return self._steps > 0

    @property
    def is_due(self) -> bool:
        return self._steps >= self._log_steps

    def close(self) -> dict[str, Any]:
        """The fields of a `step` event over the steps since the last one."""
        fields = {
            "loss": self._loss_sum / self._examples if self._examples else None,
            "examples_per_s": round(self._examples / self._busy_s, 1) if self._busy_s else None,
        }
        self._steps = self._examples = 0
        self._loss_sum = self._busy_s = 0.0
        return fields

    def may_evaluate(self, start_delay_s: float, throttle_s: float) -> bool:
        now = time.monotonic()
        return now - self._started >= start_delay_s and now - self._last_evaluation >= throttle_s

    def evaluated(self) -> None:
        self._last_evaluation = time.monotonic()
        self.resume()

    def resume(self) -> None:
        """Training goes on after something else: that time was not its own."""
        self._told = time.monotonic()


def _smooth(before: float | None, value: float) -> float:
    return value if before is None else 0.7 * before + 0.3 * value
