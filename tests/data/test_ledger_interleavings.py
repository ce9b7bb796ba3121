"""Any interleaving of what can happen to a ledger applies every minibatch exactly once, or names it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.source import Shard

SHARDS = [Shard("a", 12), Shard("b", 3), Shard("c", 9, sequential=True)]
RECORDS_PER_LEASE, MINIBATCH, NUM_EPOCHS = 5, 2, 2
NUM_LEASES = 6
PICK = st.integers(0, 1000)


def minibatches(lease: Lease) -> list[range]:
    """The records of each minibatch of a whole lease."""
    starts = range(lease.start, lease.end, MINIBATCH)
    return [range(start, min(start + MINIBATCH, lease.end)) for start in starts]


class Group(RuleBasedStateMachine):
    """Workers that apply minibatches, and count them apart from the ledger and its twin."""

    @initialize(shuffle=st.booleans(), seed=st.integers(0, 3))
    def begin(self, shuffle: bool, seed: int) -> None:
        self.arguments: dict[str, Any] = {"shuffle": shuffle, "seed": seed}
        self.ledger, self.twin = self.fresh(), self.fresh()
        self.workers = ["worker-0"]
        self.num_joined = 1
        self.open_books()
        self.save()

    def fresh(self) -> Ledger:
        return Ledger(
            SHARDS, records_per_lease=RECORDS_PER_LEASE, num_epochs=NUM_EPOCHS, **self.arguments
        )

    def open_books(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self.done: Counter[int] = Counter()  # lease number -> minibatches applied
        self.complete: set[int] = set()
        self.failed: dict[int, set[str]] = {}
        self.waiting_failed: dict[int, Lease] = {}
        self.bad: dict[int, Lease] = {}
        self.held: dict[int, tuple[str, Lease]] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        answer = getattr(self.ledger, name)(*arguments)
        assert getattr(self.twin, name)(*arguments) == answer
        return answer

    def worker(self, pick: int) -> str:
        return self.workers[pick % len(self.workers)]

    def some_held(self, pick: int) -> tuple[str, Lease]:
        return list(self.held.values())[pick % len(self.held)]

    @rule()
    def join(self) -> None:
        self.workers.append(f"worker-{self.num_joined}")
        self.num_joined += 1

    @rule(pick=PICK, count=st.integers(1, 3))
    def lease(self, pick: int, count: int) -> None:
        for i in range(count):
            self.hand_out(self.worker(pick + i))

    def hand_out(self, worker: str) -> Lease | None:
        expected = self.call("peek", worker)
        lease: Lease | None = self.call("lease", worker)
        assert lease == expected
        if lease is None:
            gone = self.complete | set(self.bad) | set(self.held)
            left = set(range(NUM_LEASES)) - gone if not self.ledger.is_done else set()
            assert all(worker in self.failed.get(number, ()) for number in left)
            return None
        assert lease.number not in self.held and lease.number not in self.complete
        assert lease.number not in self.bad
        assert worker not in self.failed.get(lease.number, ())
        assert lease.skip == self.done[lease.number]
        self.held[lease.number] = (worker, lease)
        self.waiting_failed.pop(lease.number, None)
        return lease

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def step(self, pick: int) -> None:
        self.apply(self.some_held(pick)[1])

    def apply(self, lease: Lease) -> None:
        """The next minibatch, counted from where the holder was told to begin."""
        parts = minibatches(lease)
        for record in parts[self.done[lease.number]]:
            self.counts[lease.shard, record] += 1
        self.done[lease.number] += 1
        if self.done[lease.number] < len(parts):
            self.call("progress", lease, self.done[lease.number])
            return
        self.call("complete", lease)
        self.complete.add(lease.number)
        del self.held[lease.number]

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def finish(self, pick: int) -> None:
        _, lease = self.some_held(pick)
        while lease.number in self.held:
            self.apply(lease)

    @rule(pick=PICK)
    def lose(self, pick: int) -> None:
        worker = self.worker(pick)
        expected = [number for number, (holder, _) in self.held.items() if holder == worker]
        assert [lease.number for lease in self.call("release", worker)] == expected
        for number in expected:
            del self.held[number]
        if len(self.workers) > 1:
            self.workers.remove(worker)

    @precondition(lambda self: self.held)
    @rule(pick=PICK, other=st.none() | PICK)
    def fail(self, pick: int, other: int | None) -> None:
        holder, lease = self.some_held(pick)
        worker = holder if other is None else self.worker(other)
        self.failed.setdefault(lease.number, set()).add(worker)
        assert self.call("fail", lease, worker) == len(self.failed[lease.number])
        self.waiting_failed[lease.number] = lease
        del self.held[lease.number]

    @precondition(lambda self: self.waiting_failed)
    @rule(pick=PICK, which=PICK)
    def fail_on_another_too(self, pick: int, which: int) -> None:
        """Several read the lease together: one has said already that it failed."""
        number = list(self.waiting_failed)[which % len(self.waiting_failed)]
        worker = self.worker(pick)
        self.failed[number].add(worker)
        said = self.call("fail", self.waiting_failed[number], worker)
        assert said == len(self.failed[number])

    @precondition(lambda self: self.waiting_failed)
    @rule(pick=PICK)
    def give_up(self, pick: int) -> None:
        number = list(self.waiting_failed)[pick % len(self.waiting_failed)]
        self.bad[number] = self.waiting_failed.pop(number)
        self.call("give_up", self.bad[number])

    @rule()
    def copy(self) -> None:
        """The twin becomes a new replica, by way of JSON, and is the one that goes on."""
        copy = self.fresh()
        copy.take(json.loads(json.dumps(self.ledger.replica())))
        self.ledger, self.twin = copy, self.ledger

    @rule()
    def save(self) -> None:
        waiting = {**self.waiting_failed}
        failed = {number: set(workers) for number, workers in self.failed.items()}
        books = (
            self.counts.copy(),
            self.done.copy(),
            {*self.complete},
            failed,
            waiting,
            {**self.bad},
        )
        self.saved = (json.dumps(self.ledger.snapshot()), books)

    @rule(age=st.integers(0, 4), same_names=st.booleans())
    def start_again(self, age: int, same_names: bool) -> None:
        """All are lost. The model is that of the checkpoint, and so must be the ledger."""
        if age < 4:  # mostly a new one: an old one takes back what the rules have brought about
            self.save()
        snapshot, books = self.saved
        self.open_books()
        counts, done, complete, failed, waiting, bad = books
        self.counts, self.done, self.complete = counts.copy(), done.copy(), {*complete}
        self.failed = {number: set(workers) for number, workers in failed.items()}
        self.waiting_failed, self.bad = {**waiting}, {**bad}
        self.ledger, self.twin = self.fresh(), self.fresh()
        self.ledger.restore(json.loads(snapshot))
        self.twin.take(self.ledger.replica())
        if not same_names:
            self.workers = [f"worker-{self.num_joined}"]
            self.num_joined += 1

    @precondition(lambda self: self.ledger.epoch_is_done and not self.ledger.is_done)
    @rule()
    def close(self) -> None:
        self.prove()

    def prove(self) -> None:
        for number, lease in self.bad.items():
            parts = minibatches(lease)
            for part in parts[self.done[number] :]:
                for record in part:
                    assert self.counts[lease.shard, record] == 0
                    self.counts[lease.shard, record] = 1  # accounted for
        wanted = {(shard.name, i): 1 for shard in SHARDS for i in range(shard.num_records)}
        assert dict(self.counts) == wanted
        audit = self.call("close_epoch")
        skipped = sum(lease.num_records for lease in self.bad.values())
        assert audit.applied_once
        assert (audit.records, audit.skipped) == (len(wanted) - skipped, skipped)
        said = {lease.number: lease.skip for lease in audit.bad}
        assert said == {number: self.done[number] for number in self.bad}
        self.open_books()

    @invariant()
    def both_say_who_holds_what(self) -> None:
        assert self.ledger.replica() == self.twin.replica()
        assert self.ledger.tasks == self.twin.tasks
        for worker in self.workers:
            held = [lease.number for holder, lease in self.held.values() if holder == worker]
            assert [(x.number, x.skip) for x in self.ledger.held_by(worker)] == [
                (number, self.done[number]) for number in held
            ]

    def teardown(self) -> None:
        """Whatever happened: those who hold leases finish them, and a newcomer does the rest."""
        if not hasattr(self, "ledger"):
            return
        while not self.ledger.is_done:
            for _, lease in list(self.held.values()):
                while lease.number in self.held:
                    self.apply(lease)
            while lease := self.hand_out("newcomer"):
                while lease.number in self.held:
                    self.apply(lease)
            self.prove()


TestGroup = Group.TestCase
TestGroup.settings = settings(
    max_examples=250, stateful_step_count=60, deadline=None, derandomize=True, database=None
)
