"""How much of an image's layers has moved between an engine and a registry."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Transfer"]

EVERY_S = 10
"""How often it is said."""

_MOVING = ("Pushing", "Downloading")
_THERE = re.compile(
    r"pushed|layer already exists|mounted from|download complete|pull complete", re.I
)


class Transfer:
    """How much of an image's layers has moved, by what an engine tells of each."""

    def __init__(self, doing: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing, self._clock = doing, clock
        self._said_at = clock()
        self._layers: dict[str, tuple[int, int]] = {}

    def take(self, answer: Mapping[str, Any]) -> None:
        layer, detail = str(answer.get("id")), answer.get("progressDetail") or {}
        status = str(answer.get("status"))
        if (total := detail.get("total")) and status in _MOVING:
            # Docker counts what it packs on the way, which may come to more than the layer.
            self._layers[layer] = (min(int(detail.get("current", 0)), int(total)), int(total))
        elif layer in self._layers and _THERE.match(status):
            self._layers[layer] = (self._layers[layer][1],) * 2

    @property
    def so_far(self) -> str:
        """Empty while nothing is known. Of layers that wait for others no size is told."""
        if not self._layers:
            return ""
        moved, total = (sum(sizes) for sizes in zip(*self._layers.values(), strict=True))
        return f"{_size(moved)} of {_size(total)}"

    def line(self) -> str:
        """What to say now; empty while the last time is not long ago."""
        if not self._layers or self._clock() - self._said_at < EVERY_S:
            return ""
        self._said_at = self._clock()
        return f"{self._doing}: {self.so_far}"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
