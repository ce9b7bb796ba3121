"""How often the group changed, why, and how long the training stood still for it: the closing table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elasticdl.tracking.group_changes import Change, GroupChanges
from elasticdl.tracking.words import count

__all__ = ["Stalls"]

MOST = 20
"""So many changes have a line each; the rest is in events.jsonl."""


class Stalls:
    """Listens to events, and sums up at the end.

    The first group is no stall: nothing stood still for it.
    """

    def __init__(self) -> None:
        self.changes: list[Change] = []
        """All but the first."""
        self._group = GroupChanges()
        self._began = self._ended = 0.0
        self._saved: dict[int, float] = {}
        """When each step was saved that a training may go back to."""
        self._lost_s = 0.0

    def heard(self, event: Mapping[str, Any]) -> None:
        if event["event"] in ("step", "progress"):
            self._ended = event["time"]
        elif event["event"] == "checkpoint":
            self._saved[event["step"]] = event["time"]
        change = self._group.heard(event)
        if change is None:
            return
        if change.is_first:
            self._began = change.time
        else:
            self.changes.append(change)
            self._lost_s += self._thrown_away_s(change)
        self._ended = change.time

    def _thrown_away_s(self, change: Change) -> float:
        """When the training went back to a checkpoint: what was done since then, up to the stall."""
        if not change.went_back:
            return 0.0
        since = self._saved.get(change.step, self._began)
        return max(0.0, change.time - change.stall_s - since)

    @property
    def stall_s(self) -> float:
        return sum(change.stall_s for change in self.changes)

    @property
    def goodput(self) -> float | None:
        """The share of the time from the first step to the last in which the training went on, for good."""
        if not self.seconds:
            return None
        return max(0.0, 1 - (self.stall_s + self._lost_s) / self.seconds)

    @property
    def seconds(self) -> float:
        return max(0.0, self._ended - self._began)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """A line for each change, one for all, and the goodput; nothing when nothing changed."""
        if not self.changes:
            return ()
        shown = self.changes[:MOST]
        places = [f"stall at step {change.step}" for change in shown]
        rows = list(zip(places, _lines(shown), strict=True))
        if len(self.changes) > MOST:
            rows.append(("...", f"{len(self.changes) - MOST} more in events.jsonl"))
        rows.append(("stalls", self._total()))
        if self.goodput is not None:
            rows.append(("goodput", f"{self.goodput:.1%} of {self.seconds:.1f} s"))
        return tuple(rows)

    def _total(self) -> str:
        redone = sum(change.redone for change in self.changes)
        words = [count(len(self.changes), "change"), f"{self.stall_s:.2f} s in all"]
        if len(self.changes) > 1:
            words.append(f"{max(change.stall_s for change in self.changes):.2f} s the longest")
        if redone:
            words.append(f"{count(redone, 'step')} done again")
        return ", ".join(words)


def _lines(changes: Sequence[Change]) -> list[str]:
    """How long, how many after it, what happened: in columns."""
    seconds = [f"{change.stall_s:.2f} s" for change in changes]
    workers = [change.num_workers for change in changes]
    long, many = max(map(len, seconds)), max(map(len, workers))
    return [
        f"{stall:>{long}}  {num:<{many}}  {change.why}"
        for stall, num, change in zip(seconds, workers, changes, strict=True)
    ]
