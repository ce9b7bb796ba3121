"""Who hands out the leases of an evaluation or a prediction. It has no model and no data.

A worker asks for a lease, does it, says so, and asks again; it waits for nobody. Every call may be made again with
the same arguments. Nothing is written down: should this process be lost, the workers tell the next one what the data
is and, of a prediction, which parts are there. What is known nowhere else is done again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.source import Shard
from elasticdl.runtime.elastic.failures import Failure

__all__ = ["Dispatcher", "Facts", "Turn"]

TRIES = 3
"""On so many different workers reading a task may fail before it is the task's fault."""


@dataclass(frozen=True)
class Facts:
    """What a worker finds out of the data: enough for a ledger."""

    shards: Sequence[Shard]
    records_per_lease: int
    seed: int

    @property
    def num_leases(self) -> int:
        return sum(math.ceil(s.num_records / self.records_per_lease) for s in self.shards)


@dataclass(frozen=True)
class Turn:
    """What a worker is to do now.

    Attributes:
      do: `enter`, since it is not known; `lease`; `merge` all results; `end` with the outcome; `fail` with the failure.
      following: the lease that will be next, to be read ahead.
    """

    do: str
    lease: Lease | None = None
    following: Lease | None = None
    results: Sequence[Any] = ()
    outcome: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


class Dispatcher:
    """An actor.

    Args:
      command: evaluate or predict.
      maximum: of how many workers there are at most.
      merges: whether one of the workers makes the outcome of all results; else each is told as an event.
    """

    def __init__(self, command: str, maximum: int, merges: bool) -> None:
        self._command = command
        self._maximum = maximum
        self._merges = merges
        self._entered: dict[str, None] = {}
        self._beginner: str | None = None
        self._merger: str | None = None
        self._facts: Facts | None = None
        self._ledger: Ledger | None = None
        self._open = maximum
        """How many leases are not done."""
        self._results: dict[int, Any] = {}
        self._rows: dict[str, int] = {}
        """How far who is with a lease."""
        self._outcome: dict[str, Any] = {}
        self._failures: dict[int, Failure] = {}
        """By the number of a lease: what was last said of it."""
        self._failure: Failure | None = None
        """What the job stops with."""
        self._stopping = False
        self._events: dict[int, dict[str, Any]] = {}
        """Those that nobody has fetched yet, by their number."""
        self._last = 0
        self._changed = asyncio.Condition()

    # --- the process that started the job ---

    async def watch(self, after: int) -> dict[str, Any]:
        """New events, how many workers there should be, and who works; waits a little for something new."""
        self._last = max(self._last, after)
        self._events = {n: event for n, event in self._events.items() if n > after}
        await self._change()
        async with self._changed:
            if not self._events:
                await self._wait(1.0)
        return {"events": dict(self._events), "wanted": self._wanted, "members": self._members}

    @property
    def _wanted(self) -> int:
        return 0 if self._stopping else min(self._maximum, self._open)

    @property
    def _members(self) -> list[int]:
        """Whose end is worth waiting for: what they have begun is thrown away."""
        return [int(name.rpartition("-")[2]) for name in self._entered] if self._stopping else []

    async def start(self, index: int) -> None:
        """A worker is about to be started: it will say so itself."""
        if not self._entered:
            self._emit("waiting", message="Waiting for workers")

    async def lost(self, index: int, reason: str) -> None:
        """A worker's process is gone."""
        name = f"worker-{index}"
        if self._beginner == name:
            self._beginner = None
        if self._merger == name:
            self._merger = None
        self._rows.pop(name, None)
        if self._ledger is not None:
            self._ledger.release(name)
        if name in self._entered:
            del self._entered[name]
        self._emit("worker_lost", worker=name, reason=reason)
        await self._change()

    async def stop(self) -> dict[str, Any] | None:
        """No more leases. What came of it, when none was handed out."""
        self._stopping = True
        await self._change()
        return self._summary("interrupted") if self._ledger is None else None

    async def end(self) -> dict[str, Any] | None:
        """The job is done. What came of it, when it was stopped."""
        return self._summary("interrupted") if self._stopping and not self._outcome else None

    async def abandoned(self) -> dict[str, Any]:
        """Nobody is left of a job that was to stop: what came of it."""
        return self._summary("interrupted")

    # --- the workers ---

    async def enter(self, worker: str, pid: int, node: str, facts: Facts) -> str:
        """A worker has opened the data: `begin`, when it is to call `begun`; `go` on; or `differs`."""
        if worker not in self._entered:
            self._entered[worker] = None
            self._emit("worker_joined", worker=worker, pid=pid, node=node)
        self._facts = self._facts or facts
        if facts != self._facts:
            return "differs"
        async with self._changed:
            while self._ledger is None and self._beginner not in (None, worker):
                await self._wait(5.0)
        if self._ledger is not None:
            return "go"
        self._beginner = worker
        return "begin"

    async def begun(self, done: Collection[int], faults: Sequence[str], about: Any) -> None:
        """The output is ready for parts; those of the leases `done` are there.

        Args:
          about: is told to the process that started the job.
        """
        if self._ledger is not None:
            return
        assert self._facts is not None
        facts = self._facts
        ledger = Ledger(facts.shards, records_per_lease=facts.records_per_lease, seed=facts.seed)
        ledger.restore({**ledger.snapshot(), "applied": sorted(done)})
        self._open = facts.num_leases - len(done)
        self._ledger = ledger
        total = ledger.records_per_epoch
        self._emit("run_started", command=self._command, records=total, about=about)
        for fault in faults:
            self._emit("warning", message=fault)
        await self._change()

    async def lease(self, worker: str) -> Turn:
        """What the worker is to do; waits while that may still change."""
        async with self._changed:
            while (turn := self._turn(worker)) is None:
                await self._wait(5.0)
        return turn

    async def progress(self, worker: str, rows: int) -> None:
        """So many records of its lease are done."""
        self._rows[worker] = rows
        self._tell_progress()

    async def complete(self, worker: str, number: int, result: Any) -> None:
        """A lease is done."""
        self._rows.pop(worker, None)
        if not self._merges:  # it counts in any case: who gets it knows the leases apart
            self._emit("result", number=number, result=result)
        lease = self._held(worker, number)
        if lease is not None:
            assert self._ledger is not None
            self._ledger.complete(lease)
            self._open -= 1
            self._results[number] = result if self._merges else None
            self._tell_progress()
        await self._change()

    async def fail(self, worker: str, number: int, failure: Failure) -> None:
        """A lease could not be read."""
        lease = self._held(worker, number)
        if lease is not None:
            assert self._ledger is not None
            self._failures[number] = failure
            tries = self._ledger.fail(lease, worker)
            if tries >= min(TRIES, max(self._wanted, len(self._entered))):
                self._give_up(lease, tries)
        await self._change()

    async def stopped(self) -> None:
        """Returns when the job is to stop."""
        async with self._changed:
            while not self._stopping:
                await self._wait(60.0)

    # --- what is decided ---

    def _turn(self, worker: str) -> Turn | None:
        ledger = self._ledger
        if self._failure is not None:
            return Turn("fail", failure=self._failure)
        if self._stopping and not self._outcome:
            return Turn("end", outcome=self._summary("interrupted"))
        if ledger is None or worker not in self._entered:
            return Turn("enter")
        if not self._outcome and ledger.epoch_is_done:
            self._outcome = self._summary("completed")
            ledger.close_epoch()
        if self._outcome:
            return self._last_turn(worker)
        held = self._leases(worker)
        if held:
            return Turn("lease", held[0], held[1] if len(held) > 1 else None)
        if not ledger.holders and all(ledger.peek(name) is None for name in self._entered):
            lease = ledger.peek("")
            assert lease is not None
            self._give_up(lease, len(self._entered))
            return self._turn(worker)
        return None

    def _leases(self, worker: str) -> list[Lease]:
        """What the worker holds: one, and another to be read ahead while there are enough for all."""
        assert self._ledger is not None
        held = self._ledger.held_by(worker)
        waiting = self._open - sum(len(self._ledger.held_by(name)) for name in self._entered)
        if not held or (len(held) == 1 and waiting > len(self._entered)):
            lease = self._ledger.lease(worker)
            held += [] if lease is None else [lease]
        return held

    def _last_turn(self, worker: str) -> Turn | None:
        """All leases are done: one worker merges, or all end once it is known what they made."""
        if self._merges:
            self._merger = self._merger or worker
            results = [self._results[number] for number in sorted(self._results)]
            return Turn("merge", results=results) if self._merger == worker else None
        untold = any(event["event"] == "result" for event in self._events.values())
        return None if untold else Turn("end", outcome=self._outcome)

    def _give_up(self, lease: Lease, tries: int) -> None:
        failure = self._failures[lease.number]
        workers = "a worker" if tries == 1 else f"{tries} different workers"
        note = (
            f"Reading the records [{lease.start}, {lease.end}) of {lease.shard} failed on {workers}, so the job "
            "stops. Mend the data, or the code that reads it."
        )
        self._failure = replace(failure, notes=(*failure.notes, note))

    def _held(self, worker: str, number: int) -> Lease | None:
        held = [] if self._ledger is None else self._ledger.held_by(worker)
        return next((lease for lease in held if lease.number == number), None)

    def _summary(self, reason: str) -> dict[str, Any]:
        ledger = self._ledger
        if ledger is None:
            return {"reason": reason, "total": 0, "records": 0, "num_parts": 0}
        assert self._facts is not None
        return {
            "reason": reason,
            "total": ledger.records_per_epoch,
            "records": ledger.records_applied,
            "num_parts": self._facts.num_leases - self._open,
        }

    # --- what is told ---

    def _tell_progress(self) -> None:
        if self._ledger is None or self._outcome:
            return
        kind = {"evaluate": "evaluation_progress", "predict": "prediction_progress"}[self._command]
        # Only the last one is worth to be known.
        self._events = {n: event for n, event in self._events.items() if event["event"] != kind}
        total = self._ledger.records_per_epoch
        records = self._ledger.records_applied + sum(self._rows.values())
        self._emit(kind, records=min(records, total), total=total, workers=len(self._entered))

    def _emit(self, event: str, **fields: Any) -> None:
        self._last += 1
        self._events[self._last] = {"time": round(time.time(), 3), "event": event, **fields}

    async def _change(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
