"""The ledger as a picture: the epochs with their audits, and the tasks of the open one. Pure."""

from __future__ import annotations

from typing import Any

from elasticdl.runtime.dashboard.columns import moment, whole
from elasticdl.runtime.dashboard.digest import Digest

__all__ = ["ledger"]

MOST = 1000
"""So many epochs are told: the last ones."""


def ledger(digest: Digest) -> dict[str, Any]:
    """The epochs so far, and how many tasks of the open one are in which state."""
    ends = set(digest.epoch_ends) | set(digest.audits)
    wanted = whole(digest.started, "num_epochs") or 0
    known = sorted({*ends, *range(min(wanted, MOST))})[-MOST:]
    return {"epochs": [_epoch(digest, epoch) for epoch in known], "tasks": _tasks(digest)}


def _epoch(digest: Digest, epoch: int) -> dict[str, Any]:
    audit = digest.audits.get(epoch, {})
    applied = audit.get("applied_once")
    return {
        "epoch": epoch,
        "records": whole(audit, "records"),
        "examples": whole(audit, "examples"),
        "applied_once": applied if isinstance(applied, bool) else None,
        "finished": moment(audit),
    }


def _tasks(digest: Digest) -> dict[str, int] | None:
    if digest.tasks is None:
        return None
    return {name: whole(digest.tasks, name) or 0 for name in ("todo", "leased", "done", "redone")}
