"""What a ledger does with leases that cannot be read, and its copies in other processes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.source import Shard
from elasticdl.errors import AuditFailure

SHARDS = [Shard("a", 25), Shard("b", 7), Shard("c", 40), Shard("d", 12, sequential=True)]


def make(**options: Any) -> Ledger:
    return Ledger(SHARDS, **{"records_per_lease": 10, "num_epochs": 2, "seed": 3, **options})


def take(ledger: Ledger, worker: str = "local") -> Lease:
    lease = ledger.lease(worker)
    assert lease is not None
    return lease


def run_epoch(ledger: Ledger, worker: str = "local") -> list[Lease]:
    leases = []
    while lease := ledger.lease(worker):
        leases.append(lease)
        ledger.complete(lease)
    return leases


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    again: dict[str, Any] = json.loads(json.dumps(state))
    assert again == state
    return again


def test_worker_holds_its_leases_in_order_with_their_progress() -> None:
    ledger = make()
    first, other, second = take(ledger, "one"), take(ledger, "two"), take(ledger, "one")
    ledger.progress(first, 2)
    assert [(x.number, x.skip) for x in ledger.held_by("one")] == [(0, 2), (2, 0)]
    assert ledger.held_by("two") == [other] and ledger.held_by("three") == []
    ledger.complete(first)
    assert ledger.held_by("one") == [second]


def test_failed_lease_is_next_for_others_and_never_for_the_same_worker() -> None:
    ledger = make()
    poisoned = take(ledger, "one")
    ledger.progress(poisoned, 2)
    assert ledger.fail(poisoned, "one") == 1
    assert ledger.peek("one") == take(ledger, "one")
    assert ledger.peek("two") == take(ledger, "two")
    assert [(x.number, x.skip) for x in ledger.held_by("two")] == [(poisoned.number, 2)]
    assert ledger.fail(poisoned, "two") == 2
    run_epoch(ledger, "one")
    assert ledger.lease("one") is None and not ledger.epoch_is_done
    assert take(ledger, "three").number == poisoned.number


def test_worker_counts_once_when_a_lease_fails_on_it_twice() -> None:
    ledger = make()
    lease = take(ledger, "group")
    assert ledger.fail(lease, "one") == 1
    assert ledger.fail(lease, "two") == 2  # it waits already: both had read it
    assert take(ledger, "group").number == lease.number
    assert ledger.fail(lease, "one") == 2


def test_losing_workers_counts_against_no_lease() -> None:
    ledger = make()
    for worker in ("one", "two", "three"):
        assert take(ledger, worker).number == 0
        ledger.release(worker)
    assert ledger.fail(take(ledger, "four"), "four") == 1
    assert take(ledger, "one").number == 0


def test_what_was_lost_is_next_in_the_order_in_which_it_was_leased() -> None:
    ledger = make()
    lost = [take(ledger, worker).number for worker in ("one", "two", "one", "one")]
    ledger.release("one")
    assert [take(ledger, "two").number for _ in range(4)] == [lost[0], *lost[2:], 4]


def test_what_was_started_is_next_by_number_when_restored() -> None:
    ledger = make()
    held = [take(ledger, "one") for _ in range(5)]
    for lease in (held[4], held[1]):
        ledger.progress(lease, 1)
    restored = make()
    restored.restore(through_json(ledger.snapshot()))
    assert [take(restored).number for _ in range(7)] == [1, 4, 0, 2, 3, 5, 6]


def test_failing_or_giving_up_is_refused_when_the_lease_is_not_there() -> None:
    ledger = make()
    lease = take(ledger)
    with pytest.raises(KeyError):
        ledger.give_up(lease)
    ledger.complete(lease)
    with pytest.raises(KeyError):
        ledger.fail(lease, "one")


def test_audit_names_what_was_given_up() -> None:
    ledger = make()
    poisoned = take(ledger, "one")
    ledger.progress(poisoned, 1)
    ledger.fail(poisoned, "one")
    with pytest.raises(AuditFailure, match="not done: 10 leases wait, 0 are held"):
        ledger.close_epoch()
    ledger.give_up(poisoned)
    run_epoch(ledger, "one")
    given_up = Lease(epoch=0, number=0, shard="a", start=0, end=10, skip=1)
    assert ledger.bad == (given_up,)
    audit = ledger.close_epoch()
    assert audit.applied_once and audit.bad == (given_up,)
    assert (audit.records, audit.skipped) == (74, 10)
    assert ledger.bad == ()
    run_epoch(ledger, "one")
    audit = ledger.close_epoch()
    assert (audit.records, audit.skipped, audit.bad) == (84, 0, ())


def test_snapshot_keeps_failures_and_what_was_given_up() -> None:
    ledger = make(shuffle=True)
    assert not {"failed", "bad"} & set(ledger.snapshot())
    bad, failed, lost = (take(ledger, "one") for _ in range(3))
    ledger.progress(bad, 1)
    ledger.progress(lost, 2)
    for lease in (bad, failed):
        ledger.fail(lease, "one")
    ledger.give_up(bad)
    ledger.release("one")
    restored = make()
    restored.restore(through_json(ledger.snapshot()))
    assert [(x.number, x.skip) for x in restored.bad] == [(0, 1)]
    assert take(restored, "one").skip == 2
    assert restored.fail(take(restored, "two"), "two") == 2
    run_epoch(restored, "three")
    restored.complete(restored.held_by("one")[0])
    assert restored.close_epoch().skipped == bad.num_records


def test_checkpoint_of_an_earlier_version_is_restored() -> None:
    ledger = make(seed=0)
    ledger.restore(
        {
            "version": 1,
            "epoch": 1,
            "seed": 3,
            "shuffle": True,
            "records_per_lease": 10,
            "shards": [["a", 25], ["b", 7], ["c", 40], ["d", 12]],
            "applied": [0, 1, 3],
            "started": {"4": 2},
        }
    )
    assert [(x.number, x.shard, x.start, x.end, x.skip) for x in run_epoch(ledger)] == [
        (4, "c", 10, 20, 2),
        (2, "a", 10, 20, 0),
        (5, "a", 0, 10, 0),
        (6, "d", 0, 10, 0),
        (7, "d", 10, 12, 0),
        (8, "a", 20, 25, 0),
        (9, "c", 20, 30, 0),
    ]
    assert ledger.close_epoch().records == 84


def test_tasks_are_counted_by_what_became_of_them() -> None:
    ledger, copy = make(), make()
    assert ledger.tasks == {"todo": 10, "leased": 0, "done": 0, "redone": 0}
    first, second, third = (take(ledger, worker) for worker in ("one", "two", "three"))
    ledger.complete(first)
    ledger.release("two")
    assert ledger.tasks == {"todo": 8, "leased": 1, "done": 1, "redone": 0}
    assert take(ledger, "three").number == second.number
    assert ledger.tasks == {"todo": 7, "leased": 2, "done": 1, "redone": 1}
    copy.take(through_json(ledger.replica()))
    assert copy.tasks == ledger.tasks
    ledger.fail(third, "three")
    ledger.give_up(third)
    assert ledger.tasks == {"todo": 7, "leased": 1, "done": 1, "redone": 1}, "what is left out"
    copy.restore(through_json(ledger.snapshot()))
    assert copy.tasks == {"todo": 8, "leased": 0, "done": 1, "redone": 0}


def test_copy_knows_who_holds_what_and_what_is_next() -> None:
    ledger, copy = make(shuffle=True), make()
    run_epoch(ledger)
    ledger.close_epoch()
    first, second, third = (take(ledger, worker) for worker in ("one", "two", "one"))
    ledger.progress(first, 1)
    ledger.fail(second, "two")
    copy.take(through_json(ledger.replica()))
    assert copy.epoch == 1
    assert [(x.number, x.skip) for x in copy.held_by("one")] == [(0, 1), (2, 0)]
    assert copy.peek("two") == ledger.peek("two") and copy.peek("two") != copy.peek("one")
    assert copy.release("one") == ledger.release("one")
    assert run_epoch(copy, "three") == run_epoch(ledger, "three")
    assert copy.close_epoch() == ledger.close_epoch()
    assert third.number == 2


def test_replica_is_small_when_there_are_many_leases_and_shards() -> None:
    shards = [Shard(f"shard-{i}", 20) for i in range(5_000)]
    ledger = Ledger(shards, records_per_lease=1, shuffle=True)
    for worker in range(1000):
        for _ in range(2):
            ledger.complete(take(ledger, f"{worker}"))
    for worker in range(100):
        take(ledger, f"{worker}")
    assert len(json.dumps(ledger.replica())) < 5000


def test_replica_of_other_data_is_refused() -> None:
    for options in ({"records_per_lease": 5}, {"num_epochs": 3}):
        with pytest.raises(ValueError, match="arguments was"):
            make().take(make(**options).replica())
