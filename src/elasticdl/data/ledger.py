"""The ledger: who works on which records, and the proof that each was applied exactly once.

It is pure bookkeeping: no files, no clock, no framework. An epoch is cut into leases, each a range of
one shard, in an order that depends on the seed and the epoch alone. A lease is handed out, its
progress noted in minibatches, and completed; when its worker is lost, the rest of it is handed out
again and counts against nobody.

    ledger = Ledger(shards, records_per_lease=4096, num_epochs=2, seed=7)
    while lease := ledger.lease("worker-0"):
        ...train on lease.shard[lease.start:lease.end], without its first lease.skip minibatches...
        ledger.complete(lease)
        if ledger.epoch_is_done:
            audit = ledger.close_epoch()
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from elasticdl.data.source import Shard
from elasticdl.errors import AuditFailure

__all__ = ["Audit", "Lease", "Ledger"]

VERSION = 1


@dataclass(frozen=True)
class Lease:
    """The records [start, end) of a shard, once, in one epoch."""

    epoch: int
    number: int
    """Its place in the epoch's order."""
    shard: str
    start: int
    end: int
    skip: int = 0
    """Minibatches of it that were applied by an earlier holder."""

    @property
    def num_records(self) -> int:
        return self.end - self.start

    def seed(self, seed: int) -> int:
        """The seed of everything random in this lease, whoever runs it."""
        return random.Random(f"{seed}/{self.epoch}/{self.shard}/{self.start}").getrandbits(62)


@dataclass(frozen=True)
class Audit:
    """What an epoch's end proves."""

    epoch: int
    records: int
    applied_once: bool


class Ledger:
    """Hands out leases and accounts for them. One epoch is open at a time."""

    def __init__(
        self,
        shards: Sequence[Shard],
        *,
        records_per_lease: int,
        num_epochs: int = 1,
        seed: int = 0,
        shuffle: bool = False,
    ) -> None:
        self._shards = list(shards)
        self._records_per_lease = records_per_lease
        self._num_epochs = num_epochs
        self._seed = seed
        self._shuffle = shuffle
        self._epoch = 0
        self._open_epoch()

    def _open_epoch(self) -> None:
        self._waiting = self._cut() if self._epoch < self._num_epochs else []
        self._waiting.reverse()  # the next one is the last: popping there is cheap
        self._held: dict[int, tuple[str, Lease]] = {}
        self._applied: list[Lease] = []

    def _cut(self) -> list[Lease]:
        """The epoch's leases in order. Sequential shards keep their front-to-back order."""
        step = self._records_per_lease
        runs: list[list[tuple[str, int, int]]] = []
        for shard in self._shards:
            ranges = [
                (shard.name, start, min(start + step, shard.num_records))
                for start in range(0, shard.num_records, step)
            ]
            runs += [ranges] if shard.sequential else [[r] for r in ranges]
        if self._shuffle:
            random.Random(f"{self._seed}/{self._epoch}").shuffle(runs)
        return [
            Lease(self._epoch, number, *place)
            for number, place in enumerate(place for run in runs for place in run)
        ]

    @property
    def epoch(self) -> int:
        """The open epoch, counted from 0; the number of epochs when all is done."""
        return self._epoch

    @property
    def is_done(self) -> bool:
        return self._epoch >= self._num_epochs

    @property
    def epoch_is_done(self) -> bool:
        return not self._waiting and not self._held

    @property
    def records_per_epoch(self) -> int:
        return sum(shard.num_records for shard in self._shards)

    @property
    def records_applied(self) -> int:
        """Records of completed leases in the open epoch."""
        return sum(lease.num_records for lease in self._applied)

    def lease(self, worker: str = "local") -> Lease | None:
        """The next lease, or None when the open epoch has none left to hand out."""
        if not self._waiting:
            return None
        lease = self._waiting.pop()
        self._held[lease.number] = (worker, lease)
        return lease

    def peek(self) -> Lease | None:
        """The lease that `lease()` would hand out, so that it can be prepared early."""
        return self._waiting[-1] if self._waiting else None

    def progress(self, lease: Lease, minibatches: int) -> None:
        """Note that so many minibatches of the lease, from its very start, are in the model."""
        worker, held = self._held[lease.number]
        self._held[lease.number] = (worker, replace(held, skip=minibatches))

    def complete(self, lease: Lease) -> None:
        """All of the lease is in the model."""
        _, held = self._held.pop(lease.number)
        self._applied.append(held)

    def release(self, worker: str) -> list[Lease]:
        """The worker is lost: what it held, less what it applied, will be handed out next."""
        lost = [lease for holder, lease in self._held.values() if holder == worker]
        for lease in reversed(lost):
            del self._held[lease.number]
            self._waiting.append(lease)
        return lost

    def close_epoch(self) -> Audit:
        """Prove the epoch and open the next one. Raises `AuditFailure` when it does not hold."""
        if not self.epoch_is_done:
            raise AuditFailure(
                f"Epoch {self._epoch} is not done: {len(self._waiting)} leases wait, "
                f"{len(self._held)} are held."
            )
        self._check_applied_once()
        audit = Audit(self._epoch, self.records_applied, applied_once=True)
        self._epoch += 1
        self._open_epoch()
        return audit

    def _check_applied_once(self) -> None:
        ends = {shard.name: 0 for shard in self._shards}
        for lease in sorted(self._applied, key=lambda lease: (lease.shard, lease.start)):
            if lease.start != ends[lease.shard]:
                fault = "was applied twice" if lease.start < ends[lease.shard] else "was left out"
                place = min(lease.start, ends[lease.shard])
                raise AuditFailure(f"Epoch {self._epoch}: record {place} of {lease.shard} {fault}.")
            ends[lease.shard] = lease.end
        for shard in self._shards:
            if ends[shard.name] != shard.num_records:
                raise AuditFailure(
                    f"Epoch {self._epoch}: record {ends[shard.name]} of {shard.name} was left out."
                )

    def snapshot(self) -> dict[str, Any]:
        """All that is needed to go on, as JSON. What is held goes back with what was applied of it."""
        held = [lease for _, lease in self._held.values()]
        return {
            "version": VERSION,
            "epoch": self._epoch,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "records_per_lease": self._records_per_lease,
            "shards": [[shard.name, shard.num_records] for shard in self._shards],
            "applied": sorted(lease.number for lease in self._applied),
            "started": {str(lease.number): lease.skip for lease in held if lease.skip},
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot of a ledger over the same shards. Raises ValueError otherwise."""
        for key, now in (
            ("version", VERSION),
            ("records_per_lease", self._records_per_lease),
            ("shards", [[shard.name, shard.num_records] for shard in self._shards]),
        ):
            if snapshot[key] != now:
                raise ValueError(f"{key} was {snapshot[key]!r} and is now {now!r}")
        self._seed, self._shuffle = snapshot["seed"], snapshot["shuffle"]
        self._epoch = snapshot["epoch"]
        self._open_epoch()
        applied = set(snapshot["applied"])
        skips = {int(number): skip for number, skip in snapshot["started"].items()}
        everything = self._waiting
        self._applied = [lease for lease in everything if lease.number in applied]
        rest = [
            replace(lease, skip=skips.get(lease.number, 0))
            for lease in everything
            if lease.number not in applied
        ]
        # Started leases go first: their holder was in the middle of them.
        self._waiting = [lease for lease in rest if not lease.skip]
        self._waiting += [lease for lease in rest if lease.skip]
