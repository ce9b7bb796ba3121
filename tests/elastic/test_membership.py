"""Who trains together: each rule by example."""

from __future__ import annotations

import json

import pytest

from elasticdl.runtime.elastic.membership import (
    NOTHING,
    TORN_S,
    Member,
    Membership,
    Orders,
    View,
)

PATIENCE_S, TIMEOUT_S = 30.0, 10.0


def member(index: int) -> Member:
    return Member(index, f"127.0.0.1:{9000 + index}", pid=100 + index, node="here")


class Job:
    """A membership, its clock, and workers by their index."""

    def __init__(self, minimum: int = 1, maximum: int = 3, first: int | None = None) -> None:
        self.now = 0.0
        self.membership = Membership(
            minimum, maximum, first=first, timeout_s=TIMEOUT_S, patience_s=PATIENCE_S
        )

    def start(self, *indices: int) -> None:
        for index in indices:
            self.membership.start(index)

    def arrive(
        self,
        index: int,
        number: int = 0,
        version: int = NOTHING,
        *,
        may_admit: bool = True,
        broken: bool = False,
    ) -> bool:
        return self.membership.arrive(
            member(index), number, version, self.now, may_admit=may_admit, broken=broken
        )

    def form(self) -> View | None:
        return self.membership.form(self.now)

    def beat(self, index: int) -> Orders:
        return self.membership.beat(index, self.now)

    def formed(self) -> View:
        view = self.form()
        assert view is not None
        return view

    def train(self, *indices: int) -> View:
        """These workers come and are a view."""
        self.start(*indices)
        for index in indices:
            assert self.arrive(index)
        return self.formed()

    def comes_back(self) -> Job:
        """Another master, from what this one wrote down."""
        other = Job()
        other.now = self.now
        other.membership.restore(json.loads(json.dumps(self.membership.snapshot())), self.now)
        return other


# --- the first view ---


def test_workers_are_missing_until_the_maximum_is_started() -> None:
    job = Job(1, 3)
    assert job.membership.num_missing == 3
    job.start(0, 1)
    assert job.membership.num_missing == 1
    job.start(2)
    assert job.membership.num_missing == 0


def test_the_first_view_waits_for_as_many_as_are_wanted_first() -> None:
    job = Job(1, 3, first=3)
    job.start(0, 1, 2)
    job.arrive(0)
    assert job.form() is None
    job.arrive(1)
    assert job.form() is None
    job.arrive(2)
    view = job.formed()
    assert [m.index for m in view.members] == [0, 1, 2]
    assert view.number == 1


def test_the_first_view_begins_with_the_minimum_when_patience_is_over() -> None:
    job = Job(2, 4, first=4)
    job.start(0, 1, 2, 3)
    job.arrive(0)
    job.now = PATIENCE_S + 1
    assert job.form() is None, "one is below the minimum, however long it waits"
    job.arrive(1)
    assert job.formed().indices == {0, 1}


def test_the_first_view_does_not_wait_for_more_than_the_maximum() -> None:
    job = Job(1, 2, first=5)
    assert job.train(0, 1).indices == {0, 1}


def test_who_has_nothing_founds_the_training() -> None:
    view = Job(1, 3).train(2, 5)
    assert (view.truth, view.founds) == (2, True)
    assert view.behind == {5: True}


def test_nobody_who_was_not_started_is_let_in() -> None:
    job = Job()
    assert not job.arrive(0)
    assert job.beat(0) == Orders(leave=True)
    assert job.form() is None


# --- losses ---


def test_survivors_go_on_at_once_with_the_minimum() -> None:
    job = Job(2, 3, first=3)
    job.train(0, 1, 2)
    assert job.membership.lost(1)
    job.arrive(0, 1, 7, broken=True)
    assert job.form() is None, "a live member has not arrived"
    job.arrive(2, 1, 7, broken=True)
    view = job.formed()
    assert (view.number, view.indices, view.founds) == (2, {0, 2}, False)
    assert not view.behind


def test_survivors_wait_when_they_are_fewer_than_the_minimum() -> None:
    job = Job(2, 2)
    job.train(0, 1)
    job.membership.lost(1)
    job.arrive(0, 1, 7, broken=True)
    job.now = 10 * PATIENCE_S
    assert job.form() is None, "patience is no reason to go below the minimum"
    job.start(2)
    job.arrive(2)
    view = job.formed()
    assert (view.indices, view.truth, view.behind) == ({0, 2}, 0, {2: True})


def test_survivors_settle_below_the_minimum_where_nobody_can_come_in() -> None:
    job = Job(2, 2)
    job.train(0, 1)
    job.membership.lost(1)
    job.arrive(0, 1, 7, may_admit=False, broken=True)
    assert job.formed().indices == {0}
    assert job.beat(0).pause, "and meet for newcomers as soon as they can"


def test_a_loss_while_others_wait_forms_the_view_of_the_rest() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.lost(0)
    job.arrive(1, 1, 7, broken=True)
    assert job.form() is None
    job.membership.lost(2)
    assert job.formed().indices == {1}


def test_who_is_lost_is_replaced_under_a_new_index() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    job.membership.lost(1)
    assert job.membership.num_missing == 1
    job.start(1)
    assert not job.membership.knows(1), "an index is never used again"
    job.start(2)
    assert job.membership.knows(2)


def test_all_are_lost_and_the_next_found_anew_after_waiting_for_enough() -> None:
    job = Job(1, 2, first=2)
    job.train(0, 1)
    job.membership.lost(0)
    job.membership.lost(1)
    job.start(2, 3)
    job.arrive(2)
    assert job.form() is None
    job.arrive(3)
    view = job.formed()
    assert (view.number, view.founds, view.truth) == (2, True, 2)


def test_a_loss_is_told_once() -> None:
    job = Job()
    job.train(0)
    assert job.membership.lost(0)
    assert not job.membership.lost(0)


# --- who has the truth ---


def test_the_furthest_has_the_truth_and_who_missed_a_turn_needs_only_that() -> None:
    job = Job(1, 4)
    job.train(0, 1, 2, 3)
    job.membership.lost(3)
    for index, version in ((0, 7), (1, 8), (2, 7)):
        job.arrive(index, 1, version, broken=True)
    view = job.formed()
    assert (view.truth, view.behind) == (1, {0: False, 2: False})


def test_of_equals_the_lowest_index_has_the_truth() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.lost(0)
    job.arrive(2, 1, 8, broken=True)
    job.arrive(1, 1, 8, broken=True)
    assert job.formed().truth == 1


def test_a_newcomer_needs_everything_and_who_missed_a_turn_does_not() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.start(2)
    job.arrive(2)
    for index, version in ((0, 3), (1, 4)):
        job.arrive(index, 1, version, broken=True)
    view = job.formed()
    assert (view.truth, view.behind) == (1, {0: False, 2: True})


def test_version_zero_is_a_state() -> None:
    job = Job(1, 2)
    job.train(0)
    job.start(1)
    job.arrive(1)
    job.arrive(0, 1, 0)
    view = job.formed()
    assert (view.truth, view.founds, view.behind) == (0, False, {1: True})


# --- newcomers ---


def test_a_newcomer_asks_for_a_pause_and_comes_in_where_all_may_admit_it() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    assert not job.beat(0).pause
    job.start(2)
    assert not job.beat(0).pause, "its start-up is nobody's affair"
    job.arrive(2)
    assert job.beat(0).pause and job.beat(1).pause
    assert not job.beat(0).abort
    job.arrive(0, 1, 5)
    assert job.form() is None
    job.arrive(1, 1, 5)
    assert job.formed().indices == {0, 1, 2}


def test_a_newcomer_waits_when_one_survivor_cannot_admit_it() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.start(2)
    job.arrive(2)
    job.arrive(0, 1, 5)
    job.arrive(1, 1, 5, may_admit=False)
    assert job.formed().indices == {0, 1}
    assert job.membership.newcomers == [2]
    assert job.beat(0).pause, "it still waits"


def test_no_pause_for_newcomers_beyond_the_maximum() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.start(2)
    job.arrive(2)
    job.membership.scale(1, 2)
    assert not job.beat(0).pause


def test_a_newcomer_that_is_lost_while_it_waits_is_forgotten() -> None:
    job = Job(1, 3)
    job.train(0)
    job.start(1)
    job.arrive(1)
    job.membership.lost(1)
    assert not job.beat(0).pause
    assert job.membership.newcomers == []


def test_patience_is_counted_anew_for_a_newcomer_that_was_left_waiting() -> None:
    job = Job(1, 3, first=3)
    job.train(0, 1, 2)
    job.membership.lost(2)
    job.start(3)
    job.arrive(3)
    for index in (0, 1):
        job.arrive(index, 1, 5, may_admit=False)
    assert job.formed().indices == {0, 1}
    job.membership.lost(0)
    job.membership.lost(1)
    job.now += PATIENCE_S + 1
    assert job.formed().indices == {3}


def test_patience_does_not_count_from_those_that_are_lost() -> None:
    job = Job(1, 2, first=2)
    job.start(0)
    job.arrive(0)
    job.membership.lost(0)
    job.now = 10 * PATIENCE_S
    job.start(1, 2)
    job.arrive(1)
    assert job.form() is None
    job.arrive(2)
    assert job.formed().indices == {1, 2}


# --- scaling ---


def test_scaling_up_starts_more_and_lets_them_in() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    job.membership.scale(1, 4)
    assert job.membership.num_missing == 2
    assert not job.beat(0).pause
    job.start(2, 3)
    job.arrive(2)
    job.arrive(3)
    assert job.beat(0).pause
    for index in (0, 1):
        job.arrive(index, 1, 5)
    assert job.formed().indices == {0, 1, 2, 3}


def test_scaling_down_keeps_the_lowest_and_turns_the_rest_away() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.scale(1, 1)
    assert all(job.beat(index).pause for index in range(3))
    for index in range(3):
        job.arrive(index, 1, 5)
    view = job.formed()
    assert (view.indices, view.truth) == ({0}, 0)
    assert job.beat(1) == Orders(leave=True)
    assert not job.membership.knows(2)
    assert job.membership.num_missing == 0


def test_who_asks_to_leave_does_so_between_two_steps_and_is_replaced() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    job.membership.drain(0)
    assert job.membership.num_missing == 1, "another is started at once"
    assert job.beat(0).pause and job.beat(1).pause and not job.beat(1).abort
    for index in (0, 1):
        job.arrive(index, 1, 5)
    view = job.formed()
    assert (view.indices, view.truth, view.behind) == ({1}, 1, {})
    assert job.beat(0) == Orders(leave=True)
    assert job.membership.num_missing == 1


def test_the_last_one_leaves_when_another_has_its_state() -> None:
    job = Job(1, 1)
    job.train(0)
    job.membership.drain(0)
    assert not job.beat(0).pause, "there is nobody to hand over to"
    job = job.comes_back()
    assert job.membership.num_missing == 1
    job.start(1)
    job.arrive(1)
    assert job.beat(0).pause
    job.arrive(0, 1, 5)
    view = job.formed()
    assert (view.indices, view.truth, view.behind) == ({0, 1}, 0, {1: True})
    assert job.beat(0).pause and job.beat(1).pause
    for index in (0, 1):
        job.arrive(index, 2, 6)
    assert job.formed().indices == {1}
    assert job.beat(0) == Orders(leave=True)


def test_who_alone_took_the_last_step_stays_to_hand_it_over() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    job.membership.drain(0)
    job.arrive(0, 1, 6)
    job.arrive(1, 1, 5)
    view = job.formed()
    assert (view.indices, view.truth, view.behind) == ({0, 1}, 0, {1: False})


def test_nobody_leaves_below_the_minimum_before_another_is_there() -> None:
    job = Job(2, 2)
    job.train(0, 1)
    job.membership.drain(1)
    assert not job.beat(0).pause
    job.start(2)
    job.arrive(2)
    assert job.beat(0).pause
    for index in (0, 1):
        job.arrive(index, 1, 5)
    assert job.formed().indices == {0, 2}


def test_who_is_no_member_yet_leaves_at_once() -> None:
    job = Job(1, 2)
    job.train(0)
    job.start(1)
    job.membership.drain(1)
    assert not job.membership.knows(1)
    assert job.membership.num_missing == 1


def test_scaling_down_keeps_who_is_furthest() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.scale(1, 2)
    job.membership.lost(0)
    job.arrive(1, 1, 5, broken=True)
    job.arrive(2, 1, 6, broken=True)
    view = job.formed()
    assert (view.indices, view.truth, view.behind) == ({1, 2}, 2, {1: False})


def test_scaling_down_does_not_send_away_the_only_one_that_has_the_last_turn() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.scale(1, 1)
    job.membership.lost(0)
    job.arrive(1, 1, 5, broken=True)
    job.arrive(2, 1, 6, broken=True)
    assert job.formed().truth == 2


def test_a_larger_minimum_pauses_and_waits() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    job.membership.scale(3, 4)
    assert job.beat(0).pause
    for index in (0, 1):
        job.arrive(index, 1, 5)
    assert job.form() is None
    job.start(2)
    job.arrive(2)
    assert job.formed().indices == {0, 1, 2}


# --- silence ---


def test_who_says_nothing_is_expelled() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.now = TIMEOUT_S - 1
    job.beat(0)
    assert job.membership.expire(job.now) == []
    job.now = TIMEOUT_S + 1
    assert job.membership.expire(job.now) == [1]
    assert job.beat(0).abort
    assert job.beat(1) == Orders(leave=True)


def test_who_is_loading_may_be_silent() -> None:
    job = Job(1, 3)
    job.start(0)
    job.now = 100 * TIMEOUT_S
    assert job.membership.expire(job.now) == []
    assert job.membership.knows(0)


def test_who_waits_has_to_beat_as_well() -> None:
    job = Job(2, 3)
    job.start(0, 1)
    job.arrive(0)
    job.now = TIMEOUT_S + 1
    assert job.membership.expire(job.now) == [0]
    job.arrive(1)
    assert job.form() is None


def test_who_is_silent_when_something_was_torn_is_not_waited_for_so_long() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.now = TORN_S - 1
    job.arrive(0, 1, 5, broken=True)
    job.beat(2)
    assert job.membership.expire(job.now) == []
    job.now = TORN_S + 1
    assert TORN_S + 1 < TIMEOUT_S
    assert job.membership.expire(job.now) == [1]
    assert job.beat(2).abort


def test_who_is_silent_while_all_train_has_the_whole_timeout() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.now = TORN_S + 1
    assert job.membership.expire(job.now) == []


def test_who_is_loading_may_be_silent_when_something_was_torn() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.start(2)
    job.membership.lost(1)
    job.now = TORN_S + 1
    job.beat(0)
    assert job.membership.expire(job.now) == []
    assert job.membership.knows(2)


@pytest.mark.parametrize("call_first", ["beat", "arrive"])
def test_an_expelled_worker_that_comes_back_late_is_turned_away(call_first: str) -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.now = TIMEOUT_S + 1
    job.beat(0)
    job.membership.expire(job.now)
    if call_first == "beat":
        assert job.beat(1).leave
    assert not job.arrive(1, 1, 9)
    assert not job.membership.knows(1)
    job.arrive(0, 1, 5, broken=True)
    view = job.formed()
    assert (view.indices, view.truth) == ({0}, 0)
    assert not job.arrive(1, 1, 9)
    assert not job.membership.newcomers


# --- what beats are told ---


def test_nothing_is_ordered_when_nothing_happens() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    assert job.beat(0) == Orders(number=1)


def test_abort_is_ordered_when_a_member_is_gone_and_not_to_who_has_arrived() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.lost(2)
    assert job.beat(0).abort and job.beat(1).abort
    job.arrive(0, 1, 5, broken=True)
    assert job.beat(0) == Orders()
    assert job.beat(1).abort


def test_no_abort_for_a_pause_that_the_members_agreed_on() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.start(2)
    job.arrive(2)
    job.arrive(0, 1, 5)
    assert job.beat(1).pause and not job.beat(1).abort


def test_no_abort_when_a_newcomer_is_lost() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.start(2)
    job.arrive(2)
    job.membership.lost(2)
    assert not job.beat(0).abort


def test_abort_is_over_with_the_next_view() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.lost(2)
    for index in (0, 1):
        job.arrive(index, 1, 5, broken=True)
    job.formed()
    assert job.beat(0) == Orders(number=2)


def test_abort_is_ordered_when_something_failed_for_a_member_that_lives() -> None:
    job = Job(1, 2)
    job.train(0, 1)
    job.arrive(0, 1, 5, broken=True)
    assert job.beat(1).abort


def test_a_broken_view_is_known_as_such() -> None:
    job = Job(1, 3)
    assert job.membership.is_broken
    job.train(0, 1)
    assert not job.membership.is_broken
    job.arrive(0, 1, 3)
    assert job.membership.is_broken
    job.arrive(1, 1, 3)
    job.formed()
    assert not job.membership.is_broken
    job.membership.lost(0)
    assert job.membership.is_broken


# --- stopping ---


def test_stop_reaches_everybody_and_starts_nobody() -> None:
    job = Job(2, 3)
    job.train(0, 1)
    job.membership.stops = True
    assert job.beat(0).stop and job.beat(1).stop
    assert job.membership.num_missing == 0


def test_who_is_left_may_end_below_the_minimum_when_the_job_stops() -> None:
    job = Job(2, 2)
    job.train(0, 1)
    job.membership.lost(1)
    job.arrive(0, 1, 5, broken=True)
    assert job.form() is None
    job.membership.stops = True
    assert job.formed().indices == {0}
    assert job.beat(0).stop


# --- repeated calls ---


def test_to_arrive_again_changes_nothing() -> None:
    job = Job(1, 3, first=2)
    job.start(0, 1)
    assert job.arrive(0) and job.arrive(0)
    assert job.form() is None
    job.arrive(1)
    assert job.formed().indices == {0, 1}


def test_to_arrive_again_when_the_view_is_there_does_not_end_it() -> None:
    job = Job(1, 2)
    view = job.train(0, 1)
    assert job.arrive(0), "its answer was lost: it asks again"
    assert not job.membership.is_broken
    assert job.form() is None
    assert job.membership.view == view


def test_what_was_said_in_an_older_view_does_not_end_a_newer_one() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.lost(2)
    for index in (0, 1):
        job.arrive(index, 1, 5, broken=True)
    view = job.formed()
    assert job.arrive(1, 1, 5, broken=True)
    assert not job.membership.is_broken
    assert job.membership.view == view


# --- a master that comes back ---


def test_a_master_that_comes_back_has_the_view() -> None:
    job = Job(1, 3)
    view = job.train(0, 1)
    job.now = 100.0
    other = job.comes_back()
    assert other.membership.view == view
    assert other.membership.num_missing == 1
    assert other.beat(0) == Orders(number=view.number)
    assert not other.membership.is_broken
    assert other.membership.snapshot() == job.membership.snapshot()


def test_members_have_a_whole_timeout_after_the_master_comes_back() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.now = 100 * TIMEOUT_S
    other = job.comes_back()
    assert other.membership.expire(other.now) == []
    other.now += TIMEOUT_S + 1
    assert other.membership.expire(other.now) == [0, 1]


def test_who_waited_says_so_again_to_a_master_that_comes_back() -> None:
    job = Job(1, 3)
    job.train(0, 1)
    job.membership.lost(1)
    job.start(2)
    job.arrive(2)
    job.arrive(0, 1, 5, broken=True)
    other = job.comes_back()
    assert other.form() is None
    other.arrive(2)
    assert other.form() is None
    other.arrive(0, 1, 5, broken=True)
    view = other.formed()
    assert (view.number, view.indices, view.truth, view.behind) == (2, {0, 2}, 0, {2: True})


def test_a_master_that_comes_back_knows_who_was_lost_and_gives_no_index_twice() -> None:
    job = Job(1, 3)
    job.train(0, 1, 2)
    job.membership.lost(2)
    other = job.comes_back()
    assert other.beat(2) == Orders(leave=True)
    assert other.beat(0).abort
    other.start(2)
    assert not other.membership.knows(2)


def test_a_master_that_comes_back_knows_the_scale_and_the_stop() -> None:
    job = Job(1, 3)
    job.train(0)
    job.membership.scale(2, 5)
    assert job.comes_back().membership.num_missing == 4
    job.membership.stops = True
    other = job.comes_back()
    assert other.membership.num_missing == 0
    assert other.beat(0).stop


def test_a_master_that_comes_back_before_the_first_view_waits_as_before() -> None:
    job = Job(1, 3, first=3)
    job.start(0, 1, 2)
    job.arrive(0)
    other = Job(1, 3, first=3)
    other.membership.restore(json.loads(json.dumps(job.membership.snapshot())), 0.0)
    other.arrive(0)
    assert other.form() is None
    other.arrive(1)
    other.arrive(2)
    assert other.formed().indices == {0, 1, 2}
