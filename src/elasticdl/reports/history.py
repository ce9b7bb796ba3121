"""The course of a training, read from its events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Curve", "curves_of", "duration_of", "epochs_of", "last"]

Event = Mapping[str, Any]

_NO_METRICS = frozenset({"time", "event", "epoch", "step"})


@dataclass(frozen=True)
class Curve:
    """A metric over the epochs, which are counted from 1 here as people do; NaN where it was not logged."""

    name: str
    epochs: Sequence[int]
    training: Sequence[float]
    validation: Sequence[float]


def epochs_of(events: Iterable[Event]) -> list[Event]:
    """The `epoch` events that count: what a resumed run did again replaces what it had done before."""
    epochs: dict[int, Event] = {}
    for event in events:
        if event.get("event") == "epoch":
            epochs = {n: kept for n, kept in epochs.items() if n < event["epoch"]}
            epochs[event["epoch"]] = event
    return list(epochs.values())


def last(events: Iterable[Event], name: str) -> Event | None:
    """The last event of a name."""
    found = None
    for event in events:
        if event.get("event") == name:
            found = event
    return found


def duration_of(events: Iterable[Event]) -> float | None:
    """Seconds from each start to the last that was heard before the next; None without a start."""
    total, started, latest = 0.0, None, 0.0
    for event in events:
        if event.get("event") == "run_started":
            total += latest - started if started is not None else 0.0
            started = event["time"]
        latest = event.get("time", latest)
    return total + max(0.0, latest - started) if started is not None else None


def curves_of(epochs: Sequence[Event]) -> list[Curve]:
    """The curves of all metrics, the loss first; a validation metric lies with its training metric."""
    names: dict[str, None] = {}
    for event in epochs:
        for key, value in event.items():
            if key not in _NO_METRICS and (value is None or isinstance(value, float | int)):
                names[key.removeprefix("val_")] = None
    ordered = sorted(names, key=lambda name: name != "loss")
    numbers = [int(event["epoch"]) + 1 for event in epochs]
    curves = [
        Curve(name, numbers, _logged(epochs, name), _logged(epochs, f"val_{name}"))
        for name in ordered
    ]
    return [curve for curve in curves if _any_number(curve)]


def _logged(epochs: Sequence[Event], key: str) -> list[float]:
    values = [event.get(key) for event in epochs]
    return [float(value) if isinstance(value, float | int) else math.nan for value in values]


def _any_number(curve: Curve) -> bool:
    return any(math.isfinite(value) for value in (*curve.training, *curve.validation))
