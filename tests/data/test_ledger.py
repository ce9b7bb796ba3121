"""The ledger without a process: hand out, lose, restore at every step, and count records."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.source import Shard
from elasticdl.errors import AuditFailure

SHARDS = [Shard("a", 25), Shard("b", 7), Shard("c", 40)]


def make(**options: object) -> Ledger:
    defaults: dict[str, object] = {"records_per_lease": 10, "num_epochs": 2, "seed": 3}
    return Ledger(SHARDS, **{**defaults, **options})  # type: ignore[arg-type]


def run_epoch(ledger: Ledger) -> list[Lease]:
    leases = []
    while lease := ledger.lease():
        leases.append(lease)
        ledger.complete(lease)
    return leases


def records(leases: list[Lease]) -> Counter[tuple[str, int]]:
    return Counter((lease.shard, i) for lease in leases for i in range(lease.start, lease.end))


def test_each_record_once_when_an_epoch_is_run() -> None:
    ledger = make(shuffle=True)
    for epoch in range(2):
        assert ledger.epoch == epoch
        counts = records(run_epoch(ledger))
        assert len(counts) == 72 and set(counts.values()) == {1}
        audit = ledger.close_epoch()
        assert (audit.epoch, audit.records, audit.applied_once) == (epoch, 72, True)
    assert ledger.is_done and ledger.lease() is None


def test_order_depends_on_seed_and_epoch_alone_when_shuffled() -> None:
    first, again, other = (make(shuffle=True, seed=s) for s in (1, 1, 2))
    orders = [run_epoch(ledger) for ledger in (first, again, other)]
    assert orders[0] == orders[1] != orders[2]
    first.close_epoch()
    assert [(x.shard, x.start) for x in run_epoch(first)] != [(x.shard, x.start) for x in orders[0]]


def test_file_order_when_not_shuffled() -> None:
    leases = run_epoch(make())
    assert [(x.shard, x.start, x.end) for x in leases[:4]] == [
        ("a", 0, 10),
        ("a", 10, 20),
        ("a", 20, 25),
        ("b", 0, 7),
    ]


def test_sequential_shard_is_read_front_to_back_when_shuffled() -> None:
    shards = [Shard(name, 50, sequential=True) for name in "abcd"]
    ledger = Ledger(shards, records_per_lease=10, seed=1, shuffle=True)
    leases = run_epoch(ledger)
    for name in "abcd":
        starts = [x.start for x in leases if x.shard == name]
        assert starts == sorted(starts)
    assert [x.shard for x in leases] != sorted(x.shard for x in leases)


def test_rest_of_the_lease_goes_back_when_a_worker_is_lost() -> None:
    ledger = make(num_epochs=1)
    lost, kept = ledger.lease("one"), ledger.lease("two")
    assert lost is not None and kept is not None
    ledger.progress(lost, 3)
    assert [x.number for x in ledger.release("one")] == [lost.number]
    again = ledger.lease("two")
    assert again is not None
    assert (again.number, again.start, again.skip) == (lost.number, lost.start, 3)
    ledger.complete(again)
    ledger.complete(kept)
    run_epoch(ledger)
    assert ledger.close_epoch().applied_once


def test_losing_workers_over_and_over_loses_nothing() -> None:
    chance = random.Random(7)
    for _ in range(20):
        ledger = make(num_epochs=1, shuffle=True)
        applied: Counter[tuple[str, int]] = Counter()
        while not ledger.epoch_is_done:
            worker = f"w{chance.randrange(3)}"
            if chance.random() < 0.3:
                ledger.release(worker)
            elif (lease := ledger.lease(worker)) and chance.random() < 0.7:
                ledger.complete(lease)
                applied += records([lease])
        assert set(applied.values()) == {1} and len(applied) == 72
        assert ledger.close_epoch().applied_once


def test_restoring_at_every_step_gives_the_same_records() -> None:
    whole = [x for ledger in [make(shuffle=True)] for x in run_epoch(ledger)]
    for cut in range(len(whole) + 1):
        ledger = make(shuffle=True)
        before = [ledger.lease() for _ in range(cut)]
        for lease in before:
            assert lease is not None
            ledger.complete(lease)
        if held := ledger.lease():
            ledger.progress(held, 1)
        snapshot = json.loads(json.dumps(ledger.snapshot()))
        restored = make(shuffle=True)
        restored.restore(snapshot)
        rest = run_epoch(restored)
        assert [x.number for x in rest] == [x.number for x in whole[cut:]]
        assert [x.skip for x in rest] == ([1] if held else []) + [0] * (
            len(rest) - 1 if held else 0
        )
        assert restored.close_epoch().records == 72


def test_restore_is_refused_when_the_data_changed() -> None:
    snapshot = make().snapshot()
    other = Ledger([Shard("a", 26)], records_per_lease=10)
    with pytest.raises(ValueError, match="shards"):
        other.restore(snapshot)


def test_audit_fails_when_a_record_is_applied_twice_or_left_out() -> None:
    ledger = make(num_epochs=1)
    run_epoch(ledger)
    ledger._open.applied[1] = 2
    with pytest.raises(AuditFailure, match="record 10 of a was applied twice"):
        ledger.close_epoch()
    ledger._open.applied[1:4] = bytes([1, 1, 0])
    with pytest.raises(AuditFailure, match="record 0 of b was left out"):
        ledger.close_epoch()
    ledger._open.applied[1:4] = bytes([0, 1, 1])
    with pytest.raises(AuditFailure, match="record 10 of a was left out"):
        ledger.close_epoch()
    ledger._open.applied[1] = 1
    ledger._open.records -= 1
    with pytest.raises(AuditFailure, match="71 records were applied and 0 given up, of 72"):
        ledger.close_epoch()


def test_epoch_cannot_be_closed_when_a_lease_is_held() -> None:
    ledger = make()
    ledger.lease()
    with pytest.raises(AuditFailure, match="not done"):
        ledger.close_epoch()


def test_lease_seed_depends_on_its_place_only() -> None:
    lease = Lease(epoch=1, number=4, shard="a", start=10, end=20)
    assert lease.seed(3) == Lease(epoch=1, number=9, shard="a", start=10, end=20, skip=2).seed(3)
    assert lease.seed(3) != lease.seed(4)
    assert 0 <= lease.seed(3) < 2**62
