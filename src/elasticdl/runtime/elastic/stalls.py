"""How often the group changed, why, and how long the training stood still for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Stalls"]


@dataclass
class _Row:
    what: str
    members: int
    stall_s: float


@dataclass
class Stalls:
    """Listens to events, and sums up at the end."""

    rows: list[_Row] = field(default_factory=list)
    _changes: list[str] = field(default_factory=list)

    def heard(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "worker_lost":
            self._changes.append(f"{event['worker']} lost ({event['reason']})")
        elif kind == "worker_joined":
            self._changes.append(f"{event['worker']} joined")
        elif kind == "group_formed":
            if self.rows or event["stall_s"] is not None:
                self.rows.append(
                    _Row(", ".join(self._changes), len(event["members"]), event["stall_s"] or 0.0)
                )
            self._changes = []

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """A line for each change of the group, and one for all."""
        if not self.rows:
            return ()
        total = sum(row.stall_s for row in self.rows)
        worst = max(row.stall_s for row in self.rows)
        lines = [
            (f"stall {row.stall_s:.2f} s", f"{row.what or 'regrouped'}: {row.members} workers")
            for row in self.rows[:MOST]
        ]
        if len(self.rows) > MOST:
            lines.append(("...", f"{len(self.rows) - MOST} more in events.jsonl"))
        lines.append(
            ("stalls", f"{len(self.rows)} changes, {total:.2f} s in all, {worst:.2f} s the longest")
        )
        return tuple(lines)


MOST = 20
