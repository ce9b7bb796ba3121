"""What the ledger alone can do: leases a second, with 1,000 workers that come and go.

A lease is: handed out, its progress noted, completed. Every 20th time a worker is lost instead, with
what it holds, and every 100th time a lease cannot be read and fails. What is needed are 10,000 a second.
Times are the processor's, so that other work of the machine does not count: it is all one thread.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import report

from elasticdl.data.ledger import Ledger
from elasticdl.data.source import Shard

WORKERS, RECORDS, RECORDS_PER_LEASE = 1000, 1_000_000, 100
EPOCHS, ROUNDS = 5, 3
NEEDED = 10_000


def make(records: int = RECORDS) -> Ledger:
    shards = [Shard(f"shard-{i}", records // 10) for i in range(10)]
    return Ledger(
        shards, records_per_lease=RECORDS_PER_LEASE, num_epochs=EPOCHS, seed=1, shuffle=True
    )


def run(ledger: Ledger, workers: int, churn: bool) -> int:
    """All epochs, each worker in its turn: what it held is completed, and it gets another lease."""
    chance = random.Random(7)
    names = [f"worker-{i}" for i in range(workers)]
    count = turn = 0
    while not ledger.is_done:
        name = names[turn % workers]
        turn += 1
        for held in ledger.held_by(name):
            if churn and turn % 100 == 0:
                ledger.fail(held, name)
                continue
            ledger.complete(held)
            count += 1
        if lease := ledger.lease(name):
            ledger.progress(lease, 1)
        if churn and turn % 20 == 0:
            lost = chance.randrange(workers)
            ledger.release(names[lost])
            names[lost] = f"worker-{workers + turn}"
        if ledger.epoch_is_done:
            assert ledger.close_epoch().applied_once
    assert count == EPOCHS * RECORDS // RECORDS_PER_LEASE
    return count


def leases_a_second(workers: int, churn: bool) -> float:
    best = 0.0
    for _ in range(ROUNDS):
        ledger = make()
        started = time.process_time()
        count = run(ledger, workers, churn)
        best = max(best, count / (time.process_time() - started))
    return best


def half_way() -> Ledger:
    """Each worker holds a lease; in between, others were completed."""
    ledger = make()
    for worker in range(5 * WORKERS):
        if lease := ledger.lease(f"worker-{worker}"):
            ledger.progress(lease, 1)
            if worker % 5:
                ledger.complete(lease)
    return ledger


def fastest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def main() -> None:
    with_churn = leases_a_second(WORKERS, churn=True)
    report.add(
        "ledger, 1,000 workers with churn: what is needed", with_churn, NEEDED, "leases/s", 1
    )
    alone = leases_a_second(1, churn=False)
    report.add("ledger, 1,000 workers with churn: one worker", with_churn, alone, "leases/s")
    ledger, other = half_way(), make()
    copied = fastest(lambda: other.take(json.loads(json.dumps(ledger.replica()))))
    assert other.replica() == ledger.replica()
    restored = fastest(lambda: other.restore(json.loads(json.dumps(ledger.snapshot()))))
    report.add(
        "ledger, copy to a newcomer: a checkpoint's", copied, restored, "s", more_is_better=False
    )
    numbers = list(range(1_000_000))
    shuffled = fastest(lambda: random.Random(1).shuffle(numbers))
    opened = fastest(lambda: make(len(numbers) * RECORDS_PER_LEASE))
    report.add(
        "ledger, 1,000,000 leases opened: a shuffle", opened, shuffled, "s", more_is_better=False
    )
    report.finish()


if __name__ == "__main__":
    main()
