"""The workers of a run as a timeline: who was there from when to when, why one went, how long all stood still. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from elasticdl.runtime.dashboard.columns import moment, whole
from elasticdl.runtime.dashboard.digest import Digest, Event
from elasticdl.runtime.dashboard.hiding import hide_texts
from elasticdl.runtime.jobs.account import Sittings

__all__ = ["goodput", "timeline"]

_NOTHING: Event = {}
_ENDS = {"worker_lost": "lost", "worker_left": "left"}


def timeline(digest: Digest, *, is_live: bool) -> dict[str, Any]:
    """The workers and the groups that they formed.

    Args:
      is_live: whether the run goes on: then who has not gone is still here.
    """
    workers = _workers(digest.account_events)
    if not is_live:
        _close_all(workers.values(), {"time": digest.last_time})
    for name, worker in workers.items():
        worker["is_here"] = any(span["to"] is None for span in worker["spans"])
        rate = digest.rates.get(name)
        is_fresh = rate is not None and rate[0] == max(t for t, _ in digest.rates.values())
        worker["examples_per_s"] = (
            round(rate[1], 1) if rate and is_fresh and worker["is_here"] else None
        )
    told = {"workers": list(workers.values()), "groups": groups(digest)}
    shown: dict[str, Any] = hide_texts(told)
    return shown


def _workers(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    workers: dict[str, dict[str, Any]] = {}
    sittings, last = Sittings(), _NOTHING
    new: set[str] = set()
    for event in events:
        kind = event["event"]
        if sittings.begins(event) and kind == "run_started":
            # It was killed and resumed: nobody told of the end of those who trained before.
            _close_all((one for name, one in workers.items() if name not in new), last)
        if kind == "worker_joined":
            _close(workers.get(str(event.get("worker"))), last, "ended")
            _join(workers, event)
            new.add(str(event.get("worker")))
        elif kind in _ENDS:
            _close(workers.get(str(event.get("worker"))), event, _ENDS[kind])
        elif kind == "run_ended":
            _close_all(workers.values(), event)
        if kind != "worker_joined":
            last = event
        if kind in ("step", "run_ended"):
            new = set()
    return workers


def _close_all(workers: Iterable[dict[str, Any]], event: Event) -> None:
    for worker in workers:
        _close(worker, event, "ended")


def _join(workers: dict[str, dict[str, Any]], event: Event) -> None:
    name = str(event.get("worker"))
    worker = workers.setdefault(name, {"name": name, "node": None, "pid": None, "spans": []})
    node = event.get("node")
    worker["node"], worker["pid"] = None if node is None else str(node), whole(event, "pid")
    worker["spans"].append({"from": moment(event), "to": None, "end": None, "reason": None})


def _close(worker: dict[str, Any] | None, event: Event, end: str) -> None:
    if worker is None or not worker["spans"] or worker["spans"][-1]["end"] is not None:
        return
    reason = event.get("reason") if end != "ended" else None
    worker["spans"][-1] |= {
        "to": moment(event),
        "end": end,
        "reason": None if reason is None else str(reason),
    }


def groups(digest: Digest) -> Sequence[dict[str, Any]]:
    """Each time the workers began to train together."""
    return [
        {
            "time": change.time,
            "members": [str(member) for member in change.members],
            "stall_s": 0.0 if change.is_first else change.stall_s,
            "step": change.step,
            "redone": change.redone,
            "text": change.why,
        }
        for change in digest.changes.values()
    ]


def goodput(digest: Digest) -> dict[str, Any] | None:
    """The share of the time in which the training went on; None of a run in one process."""
    stalls = digest.stalls
    if stalls.goodput is None or "workers" not in digest.curves:
        return None
    return {
        "fraction": round(stalls.goodput, 4),
        "stalled_s": round(stalls.stall_s, 3),
        "evaluating_s": round(digest.evaluating_s, 3),
        "redone_steps": sum(change.redone for change in stalls.changes),
        "total_s": round(stalls.seconds, 3),
    }
