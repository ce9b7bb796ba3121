"""How often something is worth a line."""

from __future__ import annotations

import time

__all__ = ["Throttle"]

MANY_EPOCHS = 50


class Throttle:
    """Thousands of short epochs are not worth a line each."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def is_worth_a_line(self, epoch: int, epochs: int) -> bool:
        now = time.monotonic()
        worth = epochs <= MANY_EPOCHS or epoch + 1 == epochs or now - self._last >= 1
        if worth:
            self._last = now
        return worth
