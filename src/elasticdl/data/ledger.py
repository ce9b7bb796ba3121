"""The ledger: who works on which records, and the proof that each was applied exactly once.

It is pure bookkeeping: no files, no clock, no framework. An epoch is cut into leases, each a range of
one shard, in an order that depends on the seed and the epoch alone. A lease is handed out, its
progress noted in minibatches, and completed; when its worker is lost, the rest of it is handed out
again and counts against nobody. One whose records cannot be read is tried by other workers, and may
be given up in the end: the audit names it.

    ledger = Ledger(shards, records_per_lease=4096, num_epochs=2, seed=7)
    while lease := ledger.lease("worker-0"):
        ...train on lease.shard[lease.start:lease.end], without its first lease.skip minibatches...
        ledger.complete(lease)
        if ledger.epoch_is_done:
            audit = ledger.close_epoch()
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from elasticdl.data.leases import EpochOrder, Lease
from elasticdl.data.open_epoch import OpenEpoch
from elasticdl.data.source import Shard
from elasticdl.errors import AuditFailure

__all__ = ["Audit", "Lease", "Ledger"]

VERSION = 1


@dataclass(frozen=True)
class Audit:
    """What an epoch's end proves."""

    epoch: int
    records: int
    """Records of completed leases."""
    applied_once: bool
    """Each record was applied exactly once, but for those of `bad`."""
    skipped: int = 0
    """Records of the leases that were given up."""
    bad: tuple[Lease, ...] = ()
    """The leases that were given up. The first `skip` minibatches of each are in the model, once."""


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

    def _open_epoch(self, order: EpochOrder | None = None) -> None:
        key = (self._epoch, self._seed, self._shuffle)
        if order is None or order.key != key:
            shards = [] if self.is_done else self._shards
            order = EpochOrder(shards, self._records_per_lease, *key)
        self._open = OpenEpoch(order)

    @property
    def epoch(self) -> int:
        """The open epoch, counted from 0; the number of epochs when all is done."""
        return self._epoch

    @property
    def is_done(self) -> bool:
        return self._epoch >= self._num_epochs

    @property
    def epoch_is_done(self) -> bool:
        return self._open.is_done

    @property
    def records_per_epoch(self) -> int:
        return sum(shard.num_records for shard in self._shards)

    @property
    def records_applied(self) -> int:
        """Records of completed leases in the open epoch."""
        return self._open.records

    @property
    def tasks(self) -> dict[str, int]:
        """How many leases of the open epoch are todo, leased and done; how many were handed out again (redone)."""
        return self._open.tasks

    @property
    def bad(self) -> tuple[Lease, ...]:
        """The leases of the open epoch that were given up."""
        return tuple(self._open.bad.values())

    def has_waiting(self, count: int) -> bool:
        """Whether nobody holds so many leases of the open epoch yet."""
        return self._open.has_waiting(count)

    @property
    def holders(self) -> set[str]:
        """The workers that hold leases."""
        return {worker for worker, _ in self._open.held.values()}

    def lease(self, worker: str = "local") -> Lease | None:
        """The next lease that did not fail on this worker, or None when none such waits.

        None does not mean that the epoch is done: others may hold leases that come back, and what
        failed on this worker waits for another one, or to be given up.
        """
        return self._open.lease(worker)

    def peek(self, worker: str = "local") -> Lease | None:
        """The lease that `lease(worker)` would hand out, so that it can be prepared early."""
        return self._open.peek(worker)

    def held_by(self, worker: str) -> list[Lease]:
        """What the worker holds, in the order in which it was leased, with the progress noted."""
        return self._open.held_by(worker)

    def progress(self, lease: Lease, minibatches: int) -> None:
        """Note that so many minibatches of the lease, from its very start, are in the model."""
        self._open.progress(lease.number, minibatches)

    def complete(self, lease: Lease) -> None:
        """All of the lease is in the model."""
        self._open.complete(lease.number)

    def release(self, worker: str) -> list[Lease]:
        """The worker is lost: what it held, less what it applied, will be handed out next."""
        return self._open.release(worker)

    def fail(self, lease: Lease, worker: str) -> int:
        """Reading the lease failed on this worker: on how many different ones by now.

        The rest of it will be handed out next, to any other worker. A lease that several read
        together may fail on more than one of them: call it for each.
        """
        return self._open.fail(lease.number, worker)

    def give_up(self, lease: Lease) -> None:
        """Leave out what is not applied of a failed lease, for good. The audit will name it."""
        self._open.give_up(lease.number)

    def close_epoch(self) -> Audit:
        """Prove the epoch and open the next one. Raises `AuditFailure` when it does not hold."""
        epoch = self._open
        if not epoch.is_done:
            raise AuditFailure(
                f"Epoch {self._epoch} is not done: {epoch.num_waiting} leases wait, "
                f"{len(epoch.held)} are held."
            )
        epoch.check(self.records_per_epoch)
        audit = Audit(self._epoch, epoch.records, True, epoch.skipped, self.bad)
        self._epoch += 1
        self._open_epoch()
        return audit

    def snapshot(self) -> dict[str, Any]:
        """All that is needed to go on, as JSON. What is held goes back with what was applied of it."""
        epoch = self._open
        snapshot: dict[str, Any] = {
            "version": VERSION,
            "epoch": self._epoch,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "records_per_lease": self._records_per_lease,
            "shards": self._sizes(),
            "applied": [number for number, count in enumerate(epoch.applied) if count],
            "started": _by_text(epoch.started()),
        }
        if epoch.failed:
            snapshot["failed"] = _by_text({n: list(workers) for n, workers in epoch.failed.items()})
        if epoch.bad:
            snapshot["bad"] = _by_text({n: lease.skip for n, lease in epoch.bad.items()})
        return snapshot

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot of a ledger over the same shards. Raises ValueError otherwise.

        Leases are as long as they were: one process and a group of them may cut an epoch differently.
        """
        for key, now in (("version", VERSION), ("shards", self._sizes())):
            if snapshot[key] != now:
                raise ValueError(f"{key} was {snapshot[key]!r} and is now {now!r}")
        self._records_per_lease = snapshot["records_per_lease"]
        self.__dict__.pop("_arguments", None)
        self._begin_as(snapshot)
        self._open.restore(
            snapshot["applied"],
            _by_number(snapshot["started"]),
            _by_number(snapshot.get("failed", {})),
            _by_number(snapshot.get("bad", {})),
        )

    def replica(self) -> dict[str, Any]:
        """The exact state as JSON, for `take`: also who holds what and in which order leases wait."""
        return {
            "version": VERSION,
            "arguments": self._arguments,
            "epoch": self._epoch,
            "seed": self._seed,
            "shuffle": self._shuffle,
            **self._open.replica(),
        }

    def take(self, replica: Mapping[str, Any]) -> None:
        """Become exactly what the replica says: both answer the same from now on.

        Raises ValueError when it is of a ledger that was made with other arguments.
        """
        for key, now in (("version", VERSION), ("arguments", self._arguments)):
            if replica[key] != now:
                raise ValueError(f"{key} was {replica[key]!r} and is now {now!r}")
        self._begin_as(replica)
        self._open.take(replica)

    def _begin_as(self, state: Mapping[str, Any]) -> None:
        self._epoch, self._seed, self._shuffle = state["epoch"], state["seed"], state["shuffle"]
        self._open_epoch(self._open.order)

    def _sizes(self) -> list[list[Any]]:
        return [[shard.name, shard.num_records] for shard in self._shards]

    @cached_property
    def _arguments(self) -> str:
        """What must be the same in two replicas, in short: there may be many thousand shards."""
        shards = [[shard.name, shard.num_records, shard.sequential] for shard in self._shards]
        text = json.dumps([shards, self._records_per_lease, self._num_epochs])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _by_text(values: Mapping[int, Any]) -> dict[str, Any]:
    return {str(number): value for number, value in values.items()}


def _by_number(values: Mapping[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in values.items()}
