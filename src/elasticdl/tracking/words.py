"""Events in words, the same on a terminal and in a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elasticdl.tracking.group_changes import Change

__all__ = ["OF_WORKERS", "changed", "count", "exported", "lost", "numbers", "some", "workers"]

NAMED = 4
"""So many are named; of more, the first ones."""


def count(number: int, what: str) -> str:
    """`1 worker`, `2 workers`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def some(names: Sequence[str]) -> str:
    """A few names, or the first of many."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"


def numbers(fields: Mapping[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.4f}"
        for name, value in fields.items()
        if isinstance(value, float) and name not in ("time",)
    )


def workers(event: Mapping[str, Any]) -> str:
    """How many train, at the end of a line of progress; nothing where it is one process."""
    return f"  {count(event['workers'], 'worker')}" if "workers" in event else ""


def lost(event: Mapping[str, Any]) -> str:
    return f"{event['worker']} was lost: {event['reason']}"


def changed(change: Change) -> str:
    """Who trains now, and what it cost."""
    if change.is_first:
        verb = "trains" if len(change.members) == 1 else "train"
        return f"{change.num_workers} {verb}: {some(change.members)}"
    verb = "goes" if len(change.members) == 1 else "go"
    again = f", {count(change.redone, 'step')} to be done again" if change.redone else ""
    return (
        f"{change.who}: {change.num_workers} {verb} on at step {change.step} "
        f"after {change.stall_s:.2f} s{again}"
    )


def _scaled(event: Mapping[str, Any]) -> str:
    return f"scaling from {_wanted(event['before'])} to {_wanted(event['num_workers'])}"


def _master_restarted(event: Mapping[str, Any]) -> str:
    return f"the master was lost and is back, as process {event['pid']}"


def _wanted(workers: str) -> str:
    """`4` or `2:4` in words."""
    least, _, most = str(workers).rpartition(":")
    if least in ("", most):
        return count(int(most), "worker")
    return f"{least} to {count(int(most), 'worker')}"


def exported(event: Mapping[str, Any]) -> str:
    if event["value"] is None:
        return f"exported to {event['path']}"
    chosen = f"epoch {event['epoch'] + 1}, {event['metric']} {event['value']:.4f}"
    return f"exported the best epoch ({chosen}) to {event['path']}"


OF_WORKERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "worker_lost": lost,
    "scaled": _scaled,
    "master_restarted": _master_restarted,
}
"""What is worth a line as soon as it happens, by event."""
