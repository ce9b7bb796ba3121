"""Evaluation by several processes, each on some of the leases, all with the same weights and the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elasticdl.engine.evaluator import Evaluation, Evaluator
from elasticdl.engine.group import Group, GroupBroken
from elasticdl.engine.lockstep import LockstepWork

__all__ = ["SharedEvaluator"]


class SharedEvaluator:
    """Splits an evaluation over the members; what a lost one had done is done again by the others."""

    def __init__(self, evaluator: Evaluator, group: Group, work: LockstepWork) -> None:
        self._evaluator = evaluator
        self._group = group
        self._work = work

    def evaluate(
        self,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> Evaluation | None:
        """The same for every member; None when the members agreed to stop."""
        leases = self._evaluator.leases()
        total = sum(lease.num_records for lease in leases)
        own: dict[int, Any] = {}
        while True:
            try:
                parts = self._gathered(own)
                missing = [lease for lease in leases if lease.number not in parts]
                # Only what is plain is known to all or to none when the master is lost: agree on going on.
                stops = self._group.gather(bool(missing) and self._group.wants_stop)
            except GroupBroken:
                self._work.regroup()
                continue
            if any(stops):
                self._work.is_stopped = True
                return None
            if not missing:
                return self._evaluator.merge([parts[lease.number] for lease in leases])
            for lease in missing[self._group.rank :: self._group.size]:
                own[lease.number] = self._evaluator.part([lease])
                done = sum(one.num_records for one in leases if one.number in {*own, *parts})
                on_progress(min(total, done * self._group.size), total)
                if self._group.wants_stop:
                    break

    def _gathered(self, own: dict[int, Any]) -> dict[int, Any]:
        parts: dict[int, Any] = {}
        for given in self._group.gather(own):
            parts |= given
        return parts
