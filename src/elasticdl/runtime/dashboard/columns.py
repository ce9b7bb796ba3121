"""Numbers that grow with a run, packed: a hundred thousand steps take a few megabytes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elasticdl.runtime.jobs.account import as_moment

__all__ = ["Points", "moment", "number", "whole"]

Numbers = NDArray[np.float64]


class Points:
    """A curve: at which step and when it had which value."""

    def __init__(self) -> None:
        self._steps, self._times, self._values = array("d"), array("d"), array("d")

    def add(self, step: float, time: float, value: float) -> None:
        self._steps.append(step)
        self._times.append(time)
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def last(self) -> tuple[float, float, float]:
        return self._steps[-1], self._times[-1], self._values[-1]

    def arrays(self) -> tuple[Numbers, Numbers, Numbers]:
        """Steps, times and values; copies, so that more can be added meanwhile."""
        return (
            np.array(self._steps, dtype=np.float64),
            np.array(self._times, dtype=np.float64),
            np.array(self._values, dtype=np.float64),
        )


def number(event: Mapping[str, Any], name: str) -> float | None:
    """A finite number of an event; None of all else that may stand there."""
    value = event.get(name)
    if type(value) is float:  # most are
        return value if value - value == 0 else None  # neither infinite nor not a number
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def moment(event: Mapping[str, Any]) -> float | None:
    """The time of an event; None where no calendar has such a day."""
    return as_moment(event.get("time"))


def whole(event: Mapping[str, Any], name: str) -> int | None:
    value = number(event, name)
    return None if value is None or abs(value) > 2**53 else int(value)
