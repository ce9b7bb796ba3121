"""How far a run is, and how long it will still take. Pure: what it was asked for and its digest in, numbers out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elasticdl.runtime.dashboard.columns import number, whole
from elasticdl.runtime.dashboard.digest import Digest
from elasticdl.runtime.jobs.account import DONE, RUNNING, Account

__all__ = ["Progress", "progress"]

MINIBATCH = 64


@dataclass(frozen=True)
class Progress:
    """Attributes:
    total_steps: in all, as far as it can be foreseen.
    fraction: from 0 to 1.
    eta_s: seconds from the last event to the end.
    """

    total_steps: int | None = None
    fraction: float | None = None
    eta_s: float | None = None


def progress(account: Account, job: Mapping[str, Any], digest: Digest) -> Progress:
    """How far it is. What is not known is None."""
    if account.status in DONE:
        return Progress(account.step, 1.0)
    if (done := _of_records(digest)) is not None:
        return Progress(None, done, _left(digest, done) if account.status == RUNNING else None)
    total, fraction = _total_steps(job, digest), None
    step = account.step or 0
    if total:
        total = max(total, step)
        fraction = min(1.0, step / total)
    elif account.num_epochs and account.epoch:
        fraction = min(1.0, (account.epoch - 1 + _of_epoch(digest)) / account.num_epochs)
    is_running = account.status == RUNNING
    return Progress(total, fraction, _eta(digest, total, step) if is_running else None)


def _of_records(digest: Digest) -> float | None:
    """How many of its records an evaluation or a prediction has done; only those write that down."""
    kinds = ("evaluation_progress", "prediction_progress")
    told = [event for event in digest.account_events if event["event"] in kinds]
    done, total = (
        (number(told[-1], name) for name in ("records", "total")) if told else (None, None)
    )
    return None if done is None or not total else min(1.0, max(0.0, done / total))


def _left(digest: Digest, done: float) -> float | None:
    if digest.sitting_began is None or digest.last_time is None or not done:
        return None
    return round((digest.last_time - digest.sitting_began[0]) * (1 - done) / done, 1)


def _total_steps(job: Mapping[str, Any], digest: Digest) -> int | None:
    most = whole(job, "max_step") or 0
    epochs = whole(digest.started, "num_epochs") or 0
    each = _steps_per_epoch(job, digest)
    # Epochs take more steps with fewer workers: those that are over took as many as they did.
    over = max(digest.epoch_ends, default=-1)
    done = digest.epoch_ends.get(over, 0)
    total = done + max(0, epochs - over - 1) * each if epochs and each else 0
    found = min((n for n in (most, total) if n > 0), default=0)
    return found or None


def _steps_per_epoch(job: Mapping[str, Any], digest: Digest) -> int | None:
    """As in the last epoch; in the first one by the number of records."""
    ends = digest.epoch_ends
    if ends:
        last = max(ends)
        if last - 1 in ends and ends[last] > ends[last - 1]:
            return ends[last] - ends[last - 1]
        return math.ceil(ends[last] / (last + 1)) or None
    records = number(digest.started, "records")
    batch = number(job, "minibatch_size") or (MINIBATCH if job else None)
    if not records or not batch:
        return None
    # Each worker takes a minibatch of its own, unless they share one.
    is_shared = "workers" not in digest.curves or job.get("global_batch_size")
    together = 1.0 if is_shared else max(1.0, digest.curves["workers"].last[2])
    return math.ceil(records / (batch * together))


def _of_epoch(digest: Digest) -> float:
    """How much of the open epoch is done, by its tasks."""
    tasks = digest.tasks or {}
    done, open_ = (
        number(tasks, "done") or 0.0,
        sum(number(tasks, k) or 0.0 for k in ("todo", "leased")),
    )
    return done / (done + open_) if done + open_ else 0.0


def _eta(digest: Digest, total: int | None, step: int) -> float | None:
    if not total or digest.sitting_began is None or digest.last_time is None:
        return None
    began, first = digest.sitting_began
    seconds, steps = digest.last_time - began, step - first
    if steps <= 0 or seconds <= 0:
        return None
    return round((total - step) * seconds / steps, 1)
