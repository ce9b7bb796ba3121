"""What the bookkeeping of an elastic group costs with 1,000 workers that come and go, and where its limits are.

No TensorFlow, no processes, no network: the real `Membership` and `Ledger` on a simulated clock. Every 10 seconds of
it a worker is lost; another one is ready 15 s later and comes in. Workers beat as often as `member.py` lets them.
A turn moves one replica of the ledger as every worker does for all the others, with leases that are read ahead.
Costs are the processor's seconds of one thread. What Ray adds to a call is not in them.
"""

from __future__ import annotations

import heapq
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import report

from elasticdl.data.ledger import Ledger
from elasticdl.data.source import Shard
from elasticdl.runtime.elastic.master import BEATS_A_SECOND, TICK_S
from elasticdl.runtime.elastic.master import beat_s as beat_of_many_s
from elasticdl.runtime.elastic.membership import NOTHING, TORN_S, Member, Membership, View

WORKERS, SECONDS = 1000, 60.0
TURN_S, LOSS_EVERY_S, START_S, NOTICED_S = 0.5, 10.0, 15.0, 0.2
TIMEOUT_S = 30.0
LEASES_PER_WORKER, MINIBATCHES_PER_LEASE = 5, 4


def beat_every_s(workers: int) -> float:
    return beat_of_many_s(workers, TIMEOUT_S)


@dataclass
class Worker:
    member: Member
    version: int = NOTHING
    number: int = 0
    is_alive: bool = True
    waits: bool = False


class Books:
    """A replica of the ledger, moved as a turn moves it."""

    def __init__(self, workers: int, reads_ahead: bool = True) -> None:
        self._reads_ahead = reads_ahead
        self._ledger = Ledger(
            [Shard("records", workers * LEASES_PER_WORKER * MINIBATCHES_PER_LEASE)],
            records_per_lease=MINIBATCHES_PER_LEASE,
            num_epochs=1_000_000,
            shuffle=True,
        )
        self._names: list[str] = []
        self.epochs = 0

    def enter(self, names: list[str]) -> None:
        self._names = names
        for name in sorted(self._ledger.holders - set(names)):
            self._ledger.release(name)
        self._assign()

    def turn(self) -> None:
        ledger = self._ledger
        for name in self._names:
            if held := ledger.held_by(name):
                lease = held[0]
                if lease.skip + 1 < MINIBATCHES_PER_LEASE:
                    ledger.progress(lease, lease.skip + 1)
                else:
                    ledger.complete(lease)
        if ledger.epoch_is_done:
            assert ledger.close_epoch().applied_once
            self.epochs += 1
        self._assign()

    def _assign(self) -> None:
        ledger, names = self._ledger, self._names
        for name in names:
            if not ledger.held_by(name):
                ledger.lease(name)
        for name in names if self._reads_ahead else ():
            if len(ledger.held_by(name)) == 1 and ledger.has_waiting(len(names)):
                ledger.lease(name)


class Simulation:
    """A job on a simulated clock; what each kind of call costs for real."""

    def __init__(self, workers: int) -> None:
        self.membership = Membership(1, workers, first=workers)
        self.books = Books(workers)
        self.cost_s: Counter[str] = Counter()
        self.count: Counter[str] = Counter()
        self._chance = random.Random(7)
        self._workers: dict[int, Worker] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._pauses = False
        self.now = 0.0

    def run(self, seconds: float) -> None:
        self._start_missing(0.0)
        self._after(TICK_S, self._tick)
        self._after(LOSS_EVERY_S, self._lose)
        while self._events and self.now < seconds:
            self.now, _, happen = heapq.heappop(self._events)
            happen()

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), happen))

    @contextmanager
    def _measured(self, kind: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.cost_s[kind] += time.process_time() - started
        self.count[kind] += 1

    # --- workers ---

    def _start_missing(self, ready_after_s: float) -> None:
        for _ in range(self.membership.num_missing):
            worker = Worker(Member(len(self._workers), "10.0.0.1:40000"))
            self._workers[worker.member.index] = worker
            self.membership.start(worker.member.index)
            self._after(ready_after_s, lambda worker=worker: self._ready(worker))

    def _ready(self, worker: Worker) -> None:
        self._arrive(worker)
        self._after(self._chance.random() * beat_every_s(WORKERS), lambda: self._beat(worker))

    def _beat(self, worker: Worker) -> None:
        if not worker.is_alive:
            return
        with self._measured("beat"):
            orders = self.membership.beat(worker.member.index, self.now)
        assert not orders.leave
        self._pauses |= orders.pause
        view = self.membership.view
        size = len(view.members) if view is not None else 1
        self._after(beat_every_s(size), lambda: self._beat(worker))

    def _arrive(self, worker: Worker, broken: bool = False) -> None:
        if not worker.is_alive or worker.waits:
            return
        worker.waits = True
        with self._measured("arrival"):
            self.membership.arrive(
                worker.member,
                worker.number,
                worker.version,
                self.now,
                may_admit=True,
                broken=broken,
            )
            view = self.membership.form(self.now)
        self._enter(view)

    def _enter(self, view: View | None) -> None:
        if view is None:
            return
        self.count["view"] += 1
        version = max(0, self._workers[view.truth].version)
        for member in view.members:
            worker = self._workers[member.index]
            worker.number, worker.version, worker.waits = view.number, version, False
        self._pauses = False
        with self._measured("entry"):
            self.books.enter([member.name for member in view.members])
        self._after(TURN_S, lambda: self._turn(view))

    def _turn(self, view: View) -> None:
        if self.membership.view is not view or self.membership.is_broken:
            return
        with self._measured("turn"):
            self.books.turn()
        for member in view.members:
            self._workers[member.index].version += 1
        if self._pauses:
            self._regroup(view, broken=False)
        else:
            self._after(TURN_S, lambda: self._turn(view))

    def _regroup(self, view: View, *, broken: bool) -> None:
        for member in view.members:
            worker = self._workers[member.index]
            self._after(self._chance.random() / 10, lambda w=worker: self._arrive(w, broken))

    # --- what happens to them ---

    def _lose(self) -> None:
        self._after(LOSS_EVERY_S, self._lose)
        view = self.membership.view
        if view is None:
            return
        lost = self._workers[self._chance.choice(view.members).index]
        lost.is_alive = False
        self._after(NOTICED_S, lambda: self._lost(lost))
        self._regroup(view, broken=True)

    def _lost(self, worker: Worker) -> None:
        self.membership.lost(worker.member.index)
        self._start_missing(START_S)
        with self._measured("arrival"):
            view = self.membership.form(self.now)
        self._enter(view)

    def _tick(self) -> None:
        self._after(TICK_S, self._tick)
        with self._measured("tick"):
            assert not self.membership.expire(self.now)
            view = self.membership.form(self.now) if self.membership.newcomers else None
        self._enter(view)

    @property
    def master_s(self) -> float:
        return sum(self.cost_s[kind] for kind in ("beat", "arrival", "tick"))


# --- one kind of call by itself ---


def forming(workers: int) -> tuple[Membership, float]:
    """All arrive, one after the other, and the last one makes a view; the seconds for all of it."""
    membership = Membership(1, workers, first=workers)
    members = [Member(index, "10.0.0.1:40000") for index in range(workers)]
    for index in range(workers):
        membership.start(index)
    started = time.process_time()
    for member in members:
        membership.arrive(member, 0, NOTHING, 0.0, may_admit=True)
        view = membership.form(0.0)
    assert view is not None
    return membership, time.process_time() - started


def beating(membership: Membership, beats: int = 400) -> float:
    """Seconds for a beat, when nothing happens."""
    assert membership.view is not None
    indices = [member.index for member in membership.view.members]
    started = time.process_time()
    for beat in range(beats):
        membership.beat(indices[beat % len(indices)], 0.0)
    return (time.process_time() - started) / beats


def beating_while_half_wait(workers: int) -> float:
    membership, _ = forming(workers)
    assert membership.view is not None
    for member in membership.view.members[: workers // 2]:
        membership.arrive(member, 1, 0, 0.0, may_admit=True)
    late = membership.view.members[-20:]
    started = time.process_time()
    for member in late:
        membership.beat(member.index, 0.0)
    return (time.process_time() - started) / len(late)


def turns_a_second(workers: int, reads_ahead: bool, turns: int = 20) -> float:
    books = Books(workers, reads_ahead)
    books.enter([f"worker-{i}" for i in range(workers)])
    started = time.process_time()
    for _ in range(turns):
        books.turn()
    return turns / (time.process_time() - started)


def cores(workers: int, beat_s: float) -> float:
    """How many processors the beats of so many workers keep busy."""
    return beat_s * workers / beat_every_s(workers)


def most_workers() -> float:
    """With how many the beats alone take a whole processor."""
    workers = 1000
    while (share := cores(workers, beating(forming(workers)[0]))) < 0.25 and workers < 16_000:
        workers *= 2
    # The rate of all beats has an end, the cost of each grows with the workers.
    return workers / share


def add(name: str, ours: float, peer: float, unit: str, goal: float | None = None) -> None:
    report.add(f"simulation, {name}", ours, peer, unit, goal, more_is_better=False)


def main() -> None:
    simulation = Simulation(WORKERS)
    simulation.run(SECONDS)
    views = simulation.count["view"]
    assert simulation.books.epochs >= 2 and views >= 10, (simulation.books.epochs, views)
    churn = "1,000 workers with churn"
    add(f"{churn}: the master's time: the clock's", simulation.master_s, simulation.now, "s", 1)
    turn_s = simulation.cost_s["turn"] / simulation.count["turn"]
    add(f"{churn}: a turn's bookkeeping: a turn", turn_s, TURN_S, "s")
    alone, ahead = (turns_a_second(WORKERS, reads_ahead) for reads_ahead in (False, True))
    report.add("simulation, 1,000 workers: turns: without reading ahead", ahead, alone, "turns/s")
    formed, smaller = forming(WORKERS)[1], forming(WORKERS // 10)[1]
    add("a view of 1,000: one of 100", formed, smaller, "s")
    beat_s = beating(forming(WORKERS)[0])
    add("beats of 1,000: a whole core", cores(WORKERS, beat_s), 1, "cores", 1)
    waiting = cores(WORKERS, beating_while_half_wait(WORKERS))
    add("beats of 1,000 while half of them wait: a whole core", waiting, 1, "cores", 1)
    most = most_workers()
    report.add("simulation, workers whose beats take a core: 1,000", most, WORKERS, "workers")
    in_time = TORN_S * BEATS_A_SECOND
    report.add(
        "simulation, workers that beat in time when torn: 1,000", in_time, WORKERS, "workers"
    )
    report.finish()


if __name__ == "__main__":
    main()
