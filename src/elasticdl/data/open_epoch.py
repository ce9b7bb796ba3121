"""The accounts of one epoch: which leases wait, who holds which, what is in the model, what failed.

`Ledger` is the door to it. Every step is cheap however many leases and workers there are: a lease that
was never handed out is nothing but a number above `next`, and one that is in the model is a byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from elasticdl.data.leases import EpochOrder, Lease
from elasticdl.errors import AuditFailure

__all__ = ["OpenEpoch"]


class OpenEpoch:
    """Who works on which lease of an epoch, and how often each was applied."""

    def __init__(self, order: EpochOrder) -> None:
        self.order = order
        self.applied = bytearray(len(order))
        """By number: how often it was completed."""
        self.records = 0
        """Records of completed leases, added up as they were completed."""
        self.num_done = 0
        """Completed leases, counted as they were completed."""
        self.num_redone = 0
        """How often a lease was handed out that somebody had held before."""
        self.held: dict[int, tuple[str, Lease]] = {}
        self.back: dict[int, Lease] = {}
        """What was held before and waits again. The last one is handed out next, before all others."""
        self.failed: dict[int, list[str]] = {}
        """By number: the workers on which it failed."""
        self.bad: dict[int, Lease] = {}
        self._numbers_of: dict[str, dict[int, None]] = {}  # worker -> what it holds, as leased
        self._next = 0  # the first that was never handed out

    @property
    def num_waiting(self) -> int:
        """How many wait. A look at each: for messages, not for every step."""
        fresh = (n for n in range(self._next, len(self.order)) if self._is_fresh(n))
        return len(self.back) + sum(1 for _ in fresh)

    def has_waiting(self, count: int) -> bool:
        """Whether so many wait."""
        fresh = (n for n in range(self._next, len(self.order)) if self._is_fresh(n))
        return len(self.back) + sum(1 for _ in islice(fresh, count)) >= count

    @property
    def tasks(self) -> dict[str, int]:
        """How many leases wait, are held, and are in the model; how many were handed out again."""
        done, leased = self.num_done, len(self.held)
        todo = len(self.order) - done - leased - len(self.bad)
        return {"todo": todo, "leased": leased, "done": done, "redone": self.num_redone}

    @property
    def is_done(self) -> bool:
        return not self.back and not self.held and self._next >= len(self.order)

    def peek(self, worker: str) -> Lease | None:
        for lease in reversed(self.back.values()):
            if worker not in self.failed.get(lease.number, ()):
                return lease
        return self.order.lease(self._next) if self._next < len(self.order) else None

    def lease(self, worker: str) -> Lease | None:
        lease = self.peek(worker)
        if lease is not None:
            if lease.number in self.back:
                del self.back[lease.number]
                self.num_redone += 1
            else:
                self._advance(lease.number + 1)
            self._hold(lease, worker)
        return lease

    def held_by(self, worker: str) -> list[Lease]:
        return [self.held[number][1] for number in self._numbers_of.get(worker, ())]

    def progress(self, number: int, minibatches: int) -> None:
        worker, lease = self.held[number]
        self.held[number] = (worker, replace(lease, skip=minibatches))

    def complete(self, number: int) -> None:
        self.records += self._let_go(number).num_records
        self.applied[number] += 1
        self.num_done += 1
        self.failed.pop(number, None)

    def release(self, worker: str) -> list[Lease]:
        lost = self.held_by(worker)
        for lease in reversed(lost):
            self.back[lease.number] = self._let_go(lease.number)
        return lost

    def fail(self, number: int, worker: str) -> int:
        if number in self.held:
            self.back[number] = self._let_go(number)
        elif number not in self.back:
            raise KeyError(number)
        workers = self.failed.setdefault(number, [])
        if worker not in workers:
            workers.append(worker)
        return len(workers)

    def give_up(self, number: int) -> None:
        self.bad[number] = self.back.pop(number)
        self.failed.pop(number, None)

    def check(self, records_per_epoch: int) -> None:
        """Raises `AuditFailure` when not every lease was either completed once or given up."""
        for number, count in enumerate(self.applied):
            if count + (number in self.bad) != 1:
                lease = self.order.lease(number)
                fault = "was applied twice" if count else "was left out"
                place = f"record {lease.start} of {lease.shard}"
                raise AuditFailure(f"Epoch {self.order.epoch}: {place} {fault}.")
        if self.records + self.skipped != records_per_epoch:
            raise AuditFailure(
                f"Epoch {self.order.epoch}: {self.records} records were applied and "
                f"{self.skipped} given up, of {records_per_epoch}."
            )

    @property
    def skipped(self) -> int:
        """Records of the leases that were given up."""
        return sum(lease.num_records for lease in self.bad.values())

    def started(self) -> dict[int, int]:
        """By number: the minibatches in the model of leases that are begun and not complete."""
        open_leases = [*(lease for _, lease in self.held.values()), *self.back.values()]
        return {lease.number: lease.skip for lease in open_leases if lease.skip}

    def restore(
        self,
        applied: Iterable[int],
        started: Mapping[int, int],
        failed: Mapping[int, list[str]],
        bad: Mapping[int, int],
    ) -> None:
        """Become, from new, an epoch of which so much was done, and of which nobody holds anything."""
        for number in self._existing(applied):
            self.applied[number] = 1
            self.records += self.order.lease(number).num_records
        self.num_done = self.applied.count(1)
        self.bad = {n: self.order.lease(n, bad[n]) for n in self._existing(bad)}
        # Started leases go first, in order: their holders were in the middle of them.
        for number in sorted(self._existing({*started, *failed}), reverse=True):
            if self._is_fresh(number):
                self.back[number] = self.order.lease(number, started.get(number, 0))
                if number in failed:
                    self.failed[number] = list(failed[number])
        self._advance(0)

    def replica(self) -> dict[str, Any]:
        """All of this as JSON. Leases that were never handed out, and complete ones, take no room."""
        return {
            "next": self._next,
            "records": self.records,
            "redone": self.num_redone,
            "applied": _runs(self.applied),
            "held": [[n, lease.skip, worker] for n, (worker, lease) in self.held.items()],
            "back": [[n, lease.skip] for n, lease in self.back.items()],
            "failed": [[n, list(workers)] for n, workers in self.failed.items()],
            "bad": [[n, lease.skip] for n, lease in self.bad.items()],
        }

    def take(self, replica: Mapping[str, Any]) -> None:
        """Become, from new, exactly what a replica of the same epoch says."""
        for start, end in replica["applied"]:
            self.applied[start:end] = b"\1" * (end - start)
        self.num_done, self.num_redone = self.applied.count(1), replica["redone"]
        for number, skip, worker in replica["held"]:
            self._hold(self.order.lease(number, skip), worker)
        self.back = {n: self.order.lease(n, skip) for n, skip in replica["back"]}
        self.failed = {n: list(workers) for n, workers in replica["failed"]}
        self.bad = {n: self.order.lease(n, skip) for n, skip in replica["bad"]}
        self._next, self.records = replica["next"], replica["records"]

    def _hold(self, lease: Lease, worker: str) -> None:
        self.held[lease.number] = (worker, lease)
        self._numbers_of.setdefault(worker, {})[lease.number] = None

    def _let_go(self, number: int) -> Lease:
        worker, lease = self.held.pop(number)
        numbers = self._numbers_of[worker]
        del numbers[number]
        if not numbers:
            del self._numbers_of[worker]  # it may never come back
        return lease

    def _advance(self, number: int) -> None:
        # After a restore, leases that are not fresh may be anywhere; find() passes millions of them fast.
        number = self.applied.find(0, number)
        while number >= 0 and not self._is_fresh(number):
            number = self.applied.find(0, number + 1)
        self._next = len(self.order) if number < 0 else number

    def _is_fresh(self, number: int) -> bool:
        elsewhere = number in self.held or number in self.back or number in self.bad
        return not self.applied[number] and not elsewhere

    def _existing(self, numbers: Iterable[int]) -> set[int]:
        # A snapshot of more epochs than are asked for now says numbers that this ledger has not.
        return {number for number in numbers if 0 <= number < len(self.order)}


def _runs(flags: bytearray) -> list[list[int]]:
    """Where the ones are: [start, end) of each run of them."""
    runs = []
    start = flags.find(1)
    while start >= 0:
        end = flags.find(0, start)
        end = len(flags) if end < 0 else end
        runs.append([start, end])
        start = flags.find(1, end)
    return runs
