"""Lock-step turns with members that are lost at any point: every record counts exactly once, on every replica."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from counting import Data, LedLife, Life, check_alike
from meeting_point import AFTER, BEFORE, DURING, EXPELLED, Fault, MeetingPoint, ThreadGroup

from elasticdl.engine.lockstep import EchoedFailure
from elasticdl.engine.trainer import Plan
from elasticdl.errors import DataError
from elasticdl.runtime.elastic.membership import Membership

pytestmark = pytest.mark.usefixtures("tensorflow")


class Job:
    """A training by threads, to its end."""

    def __init__(
        self,
        data: Data,
        *,
        workers: int = 3,
        bounds: tuple[int, int] | None = None,
        shared: bool = False,
        max_bad_tasks: int = 0,
        seed: int = 0,
        plan: Plan | None = None,
        **schedule: Any,
    ) -> None:
        self.data = data
        self.is_led = plan is not None
        self.lives: list[Life] = []
        self.ended: list[Life] = []

        def live(group: ThreadGroup) -> None:
            options: Any = {"shared": shared, "max_bad_tasks": max_bad_tasks}
            if plan is not None:
                life: Life = LedLife(data, group, seed, plan, **options)
            else:
                life = Life(data, group, seed, **options)
            self.lives.append(life)
            life.run()
            self.ended.append(life)

        membership = Membership(*(bounds or (1, workers)), first=workers, timeout_s=1e9)
        self.point = MeetingPoint(membership, live, check=check_alike, **schedule)
        self.workers = workers

    def run(self) -> Job:
        self.point.run(self.workers)
        return self

    def check(self) -> None:
        """What must be true after any training that came to its end."""
        assert self.ended
        first = self.ended[0]
        for life in self.ended:
            np.testing.assert_array_equal(life.weights.values, first.weights.values)
            assert (life.steps, life.examples) == (first.steps, first.examples)
            assert life.ledger.replica() == first.ledger.replica()
            assert self.is_led or life.shares == first.shares
            assert life.audits == first.audits
        if first.work.is_stopped:
            assert first.weights.values.max(initial=0) <= 1
        else:
            assert sorted(first.audits) == list(range(self.data.num_epochs))
            assert all(audit.applied_once for audit in first.audits.values())
            expected = self.data.expected(first.audits)
            np.testing.assert_array_equal(first.weights.values, expected)
        assert first.examples == first.weights.values.sum()
        assert self.is_led or first.shares.total() == first.examples, "everybody's part, once"


PLAIN = Data()
MOMENTS = (BEFORE, DURING, AFTER, EXPELLED)


# --- without losses ---


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3, 5, 9])
def test_any_number_of_members_applies_every_record_once(workers: int, shared: bool) -> None:
    job = Job(PLAIN, workers=workers, shared=shared).run()
    job.check()
    assert len(job.ended) == workers


@pytest.mark.parametrize("shared", [False, True])
def test_leases_of_very_different_lengths_are_applied_once(shared: bool) -> None:
    data = Data(sizes=(1, 40, 2), records_per_lease=13, left_out=frozenset(range(3, 30)))
    Job(data, shared=shared).run().check()


@pytest.mark.parametrize("shared", [False, True])
def test_leases_without_any_minibatch_are_completed(shared: bool) -> None:
    data = Data(
        sizes=(20,), records_per_lease=4, left_out=frozenset({*range(4, 12), *range(16, 20)})
    )
    Job(data, shared=shared).run().check()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_an_epoch_of_which_nothing_is_left_ends(shared: bool, workers: int) -> None:
    data = Data(sizes=(20,), left_out=frozenset(range(20)))
    job = Job(data, workers=workers, shared=shared).run()
    job.check()
    assert job.ended[0].steps == 0


def test_a_shared_minibatch_is_one_step_whatever_the_number_of_members() -> None:
    steps = {Job(PLAIN, workers=n, shared=True).run().ended[0].steps for n in (1, 2, 4)}
    assert len(steps) == 1


# --- who comes and goes ---


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("rank", [0, 2])
def test_a_member_that_is_lost_in_a_turn_costs_no_record(
    moment: str, rank: int, shared: bool
) -> None:
    for luck in (frozenset[int](), frozenset({1}), frozenset({0, 1, 2})):
        job = Job(PLAIN, shared=shared, sums={4: Fault(moment, (rank,), luck)}).run()
        job.check()
        assert [len(view.members) for view in job.point.views] == [3, 2]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_all_but_one_may_be_lost_at_once(moment: str, shared: bool) -> None:
    job = Job(PLAIN, shared=shared, sums={5: Fault(moment, (0, 1), frozenset({2}))}).run()
    job.check()
    assert [life.name for life in job.ended] == ["worker-2"]


def test_a_training_begins_anew_when_all_are_lost() -> None:
    job = Job(PLAIN, sums={5: Fault(AFTER, (0, 1, 2))}).run()
    job.check()
    assert job.point.views[1].founds


@pytest.mark.parametrize("moment", (BEFORE, AFTER))
@pytest.mark.parametrize("meeting", range(6))
def test_a_member_that_is_lost_while_all_meet_costs_no_record(meeting: int, moment: str) -> None:
    # The first meeting is the one at which a new group takes over state; the others are at epochs' ends.
    faults = {meeting: Fault(moment, (1,))}
    job = Job(PLAIN, sums={3: Fault(DURING, (2,), frozenset({0}))}, meetings=faults).run()
    job.check()


@pytest.mark.parametrize("shared", [False, True])
def test_newcomers_have_the_state_and_take_part(shared: bool) -> None:
    job = Job(PLAIN, workers=1, bounds=(1, 3), shared=shared, joins=(2, 4)).run()
    job.check()
    assert len(job.ended) == 3
    assert [len(view.members) for view in job.point.views][-1] == 3
    assert not any(view.founds for view in job.point.views[1:])


def test_a_newcomer_that_is_lost_as_it_comes_in_leaves_the_others_as_they_are() -> None:
    job = Job(PLAIN, bounds=(1, 4), joins=(4,), meetings={1: Fault(BEFORE, (3,))}).run()
    job.check()
    assert len(job.ended) == 3


@pytest.mark.parametrize("shared", [False, True])
def test_members_that_are_not_wanted_any_more_leave_and_lose_nothing(shared: bool) -> None:
    job = Job(PLAIN, workers=4, shared=shared, scales={4: (1, 2)}).run()
    job.check()
    assert [life.name for life in job.ended] in (
        ["worker-0", "worker-1"],
        ["worker-1", "worker-0"],
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_a_stop_is_taken_by_all_in_the_same_turn(workers: int) -> None:
    job = Job(PLAIN, workers=workers, stop=4).run()
    job.check()
    assert len(job.ended) == workers
    assert all(life.work.is_stopped for life in job.ended)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stop_reaches_who_missed_the_turn_that_said_so(moment: str) -> None:
    job = Job(PLAIN, stop=4, sums={4: Fault(moment, (2,), frozenset({0}))}).run()
    job.check()
    assert all(life.work.is_stopped for life in job.ended)


# --- what cannot be read ---


def failures(job: Job) -> list[BaseException]:
    with pytest.raises(DataError):
        job.run()
    assert all(isinstance(error, DataError) for error in job.point.errors)
    return job.point.errors


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_a_task_that_nobody_can_read_stops_the_training_once_with_its_place(workers: int) -> None:
    errors = failures(Job(Data(poisoned={9: None}), workers=workers))
    assert len(errors) == workers
    own = [error for error in errors if not isinstance(error, EchoedFailure)]
    assert len(own) == 1, "one has the reason, the others know who has it"
    assert "Cannot read" in str(own[0])
    assert "of shard-0" in str(own[0]) and "--max_bad_tasks=1" in str(own[0])


def test_a_shared_task_that_nobody_can_read_stops_the_training() -> None:
    errors = failures(Job(Data(poisoned={9: None}), shared=True))
    assert len(errors) == 3
    assert all("Cannot read" in str(error) for error in errors)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_tasks_that_nobody_can_read_are_left_out_and_named(workers: int, shared: bool) -> None:
    data = Data(poisoned={9: None, 24: None})
    job = Job(data, workers=workers, shared=shared, max_bad_tasks=4).run()
    job.check()
    audits = job.ended[0].audits.values()
    assert [len(audit.bad) for audit in audits] == [2, 2]
    assert all(audit.skipped > 0 for audit in audits)
    told = [fields for ended in job.ended for event, fields in ended.told if event == "bad_task"]
    assert len(told) == 4, "by one of them"


def test_more_bad_tasks_than_allowed_stop_the_training() -> None:
    failures(Job(Data(poisoned={9: None, 24: None}), max_bad_tasks=3))


@pytest.mark.parametrize("record", [0, 9, 22, 39])
def test_a_task_that_one_member_cannot_read_is_done_by_another(record: int) -> None:
    data = Data(poisoned={record: frozenset({"worker-1"})})
    job = Job(data).run()
    job.check()
    assert not any(audit.bad for audit in job.ended[0].audits.values())


def test_a_shared_task_that_one_member_cannot_read_is_left_out_by_all() -> None:
    data = Data(records_per_lease=12, poisoned={4: frozenset({"worker-1"})})
    job = Job(data, shared=True, max_bad_tasks=2).run()
    job.check()
    assert [len(audit.bad) for audit in job.ended[0].audits.values()] == [1, 1]


def test_preemption_does_not_count_against_a_task() -> None:
    data = Data(sizes=(10,), records_per_lease=10, num_epochs=1)
    losses = {n: Fault(BEFORE, (0,)) for n in (1, 3, 5, 7)}
    job = Job(data, workers=2, joins=(2, 4, 6, 8), sums=losses).run()
    job.check()


# --- led by the real trainer ---


def check_led(job: Job) -> None:
    first, *others = job.ended
    assert isinstance(first, LedLife)
    for life in others:
        assert isinstance(life, LedLife)
        np.testing.assert_array_equal(life.weights.values, first.weights.values)
        assert life.ledger.replica() == first.ledger.replica()
        assert vars(life.trainer.progress) == vars(first.trainer.progress)
        assert life.trainer.stop_reason == first.trainer.stop_reason
    if first.trainer.stop_reason == "completed":
        np.testing.assert_array_equal(first.weights.values, job.data.expected())
        assert first.trainer.progress.metrics == {"applied": float(job.data.expected().sum())}
    assert first.weights.values.max(initial=0) <= 1


OFTEN = Plan(evaluation_steps=2, checkpoint_steps=3)
RARELY = Plan(evaluation_steps=1, evaluation_throttle_s=3600.0)


def lose_one(plan: Plan, lucky: int, turn: int) -> None:
    fault = Fault(DURING, (2,), frozenset({lucky}))
    job = Job(PLAIN, plan=plan, sums={turn: fault}).run()
    check_led(job)
    assert len(job.ended) == 2


@pytest.mark.parametrize("lucky", [0, 1, 2])
@pytest.mark.parametrize("turn", range(2, 7))
def test_a_trainer_goes_on_wherever_a_member_is_lost(lucky: int, turn: int) -> None:
    lose_one(OFTEN, lucky, turn)


@pytest.mark.parametrize("lucky", [0, 1])
def test_a_trainer_that_evaluates_rarely_goes_on_when_a_member_is_lost(lucky: int) -> None:
    lose_one(RARELY, lucky, turn=4)


@pytest.mark.parametrize("meeting", range(12))
def test_a_trainer_goes_on_wherever_all_meet_and_a_member_is_lost(meeting: int) -> None:
    job = Job(PLAIN, plan=OFTEN, meetings={meeting: Fault(BEFORE, (1,))}, joins=(3,)).run()
    check_led(job)


# --- any schedule ---


def schedule(seed: int) -> Job:
    chance = random.Random(seed)
    sizes = tuple(chance.randint(1, 25) for _ in range(chance.randint(1, 3)))
    records = range(sum(sizes))
    data = Data(
        sizes=sizes,
        records_per_lease=chance.choice([2, 5, 9]),
        minibatch=chance.choice([1, 2, 4]),
        num_epochs=chance.choice([1, 2]),
        left_out=frozenset(r for r in records if chance.random() < chance.choice([0, 0.2, 0.8])),
    )
    workers = chance.randint(1, 5)
    is_led = bool(records) and len(data.left_out) < len(records) and chance.random() < 0.4

    def faults(count: int, moments: tuple[str, ...]) -> dict[int, Fault]:
        return {
            chance.randrange(25): Fault(
                chance.choice(moments),
                tuple(chance.randrange(8) for _ in range(chance.choice([1, 1, 1, 2, 3]))),
                frozenset(r for r in range(8) if chance.random() < 0.5),
            )
            for _ in range(count)
        }

    return Job(
        data,
        workers=workers,
        bounds=(chance.randint(1, workers), workers + chance.randint(0, 2)),
        shared=chance.random() < 0.4,
        seed=seed,
        plan=chance.choice([OFTEN, Plan(), Plan(evaluation_steps=1)]) if is_led else None,
        sums=faults(chance.randint(0, 6), (*MOMENTS, DURING)),
        meetings=faults(chance.randint(0, 3), (BEFORE, AFTER)),
        joins=tuple(chance.randrange(40) for _ in range(chance.randint(0, 6))),
        scales={
            chance.randrange(40): (low := chance.randint(1, 3), low + chance.randint(0, 3))
            for _ in range(chance.choice([0, 0, 1, 2]))
        },
        stop=chance.choice([None, None, None, chance.randrange(40)]),
    )


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_every_record_counts_once_whatever_happens(first: int) -> None:
    for seed in range(first, first + 50):
        job = schedule(seed)
        try:
            job.run()
            if not job.ended:  # all were lost while they stopped: nobody is started any more
                assert job.point.membership.stops
                continue
            check_led(job) if job.is_led else job.check()
        except BaseException as error:
            error.add_note(f"schedule({seed})")
            raise
