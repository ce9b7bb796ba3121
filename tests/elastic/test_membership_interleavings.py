"""Any interleaving of what can happen to a job's workers and its master keeps one group with one truth."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from elasticdl.runtime.elastic.membership import NOTHING, Member, Membership, View

PATIENCE_S, TIMEOUT_S = 30.0, 10.0
PICK = st.integers(0, 1000)


@dataclass
class Worker:
    """A process, as it sees itself."""

    index: int
    number: int = 0
    """Of the view that it is in; 0 before the first."""
    version: int = NOTHING
    lineage: int = NOTHING
    """Which founding its state comes from."""
    is_ready: bool = False
    waits: bool = False
    """Whether it waits for a view, and has called for one."""
    is_level: bool = False
    """Whether it has the state that its view began with."""
    may_admit: bool = True

    @property
    def member(self) -> Member:
        return Member(self.index, f"127.0.0.1:{9000 + self.index}")


class Job(RuleBasedStateMachine):
    """Workers that come, train, wait and are lost; and the membership that is asked about them."""

    @initialize(minimum=st.integers(1, 3), more=st.integers(0, 3), first=st.integers(1, 6))
    def begin(self, minimum: int, more: int, first: int) -> None:
        self.now = 0.0
        self.first = first
        self.bounds = (minimum, minimum + more)
        self.membership = self.fresh()
        self.workers: dict[int, Worker] = {}
        self.expelled: list[Worker] = []
        self.views: list[View] = []
        self.num_started = self.num_founded = 0
        if more:  # most of what can go wrong needs a group that trains
            while self.membership.num_missing:
                self.start()
            while self.loading:
                self.ready(0)
            if self.is_whole:
                self.level()

    def fresh(self) -> Membership:
        return Membership(
            *self.bounds, first=self.first, timeout_s=TIMEOUT_S, patience_s=PATIENCE_S
        )

    # --- what the master does after each call ---

    def form(self) -> None:
        view = self.membership.form(self.now)
        if view is None:
            return
        assert not self.views or view.number > self.views[-1].number
        waiting = {i: w for i, w in self.workers.items() if w.waits}
        assert view.indices <= set(waiting), "somebody is in it who is lost, or did not arrive"
        old = self.views[-1].indices if self.views else set()
        assert old & set(self.workers) <= set(waiting), "a member that lives was not waited for"
        members = [waiting[i] for i in sorted(view.indices)]
        assert [m.index for m in view.members] == [w.index for w in members]
        self.check_truth(view, members)
        self.check_size(members)
        self.views.append(view)
        for worker in members:
            worker.number, worker.waits, worker.is_level = view.number, False, False
        for index in [i for i, w in self.workers.items() if not self.membership.knows(i)]:
            self.expelled.append(self.workers.pop(index))

    def check_truth(self, view: View, members: list[Worker]) -> None:
        truth = self.workers[view.truth]
        furthest = max(w.version for w in members)
        assert truth.version == furthest
        assert truth.index == min(w.index for w in members if w.version == furthest)
        assert view.founds == (furthest == NOTHING)
        lineages = {w.lineage for w in members if w.version != NOTHING}
        assert len(lineages) <= 1, "two trainings in one view"
        versions = {w.version for w in members if w.version != NOTHING}
        assert not versions or max(versions) - min(versions) <= 1
        for worker in members:
            is_behind = worker is not truth and (view.founds or worker.version < furthest)
            assert (worker.index in view.behind) == is_behind
            if is_behind:
                assert view.behind[worker.index] == (worker.version == NOTHING)

    def check_size(self, members: list[Worker]) -> None:
        old = self.views[-1].indices if self.views else set()
        survivors = [w for w in members if w.index in old]
        if all(w.may_admit for w in survivors):
            drained = self.membership.drained & {w.index for w in members}
            assert len(members) <= self.membership.maximum + len(drained)
            assert len(members) >= self.membership.minimum or self.membership.stops
        else:
            assert len(survivors) == len(members)

    # --- workers ---

    def some(self, pick: int, workers: list[Worker]) -> Worker:
        return workers[pick % len(workers)]

    @property
    def loading(self) -> list[Worker]:
        return [w for w in self.workers.values() if not w.is_ready]

    @property
    def waiting(self) -> list[Worker]:
        return [w for w in self.workers.values() if w.waits]

    @property
    def training(self) -> list[Worker]:
        """Those in the current view that do not wait for another."""
        number = self.views[-1].number if self.views else 0
        return [
            w for w in self.workers.values() if w.is_ready and not w.waits and w.number == number
        ]

    @property
    def is_whole(self) -> bool:
        """Whether all members of the current view are there to do something together."""
        return bool(self.views) and {w.index for w in self.training} == self.views[-1].indices

    @precondition(lambda self: self.membership.num_missing)
    @rule()
    def start(self) -> None:
        worker = Worker(self.num_started)
        self.num_started += 1
        self.membership.start(worker.index)
        self.workers[worker.index] = worker

    @precondition(lambda self: self.loading)
    @rule(pick=PICK)
    def ready(self, pick: int) -> None:
        worker = self.some(pick, self.loading)
        worker.is_ready = True
        self.arrive(worker)

    def arrive(self, worker: Worker, *, may_admit: bool = True, broken: bool = False) -> None:
        worker.waits, worker.may_admit = True, may_admit
        known = self.membership.arrive(
            worker.member,
            worker.number,
            worker.version,
            self.now,
            may_admit=may_admit,
            broken=broken,
        )
        assert known
        self.form()

    @precondition(lambda self: self.is_whole)
    @rule()
    def level(self) -> None:
        """The members meet, and who needs it takes over the state."""
        view = self.views[-1]
        truth = self.workers[view.truth]
        if truth.version == NOTHING:
            assert view.founds
            truth.version, truth.lineage = 0, self.num_founded
            self.num_founded += 1
        for worker in self.training:
            if worker.index in view.behind and not worker.is_level:
                worker.version, worker.lineage = truth.version, truth.lineage
            worker.is_level = True

    @precondition(lambda self: self.is_whole and all(w.is_level for w in self.training))
    @rule(turns=st.integers(1, 3))
    def train(self, turns: int) -> None:
        assert len({(w.version, w.lineage) for w in self.training}) == 1
        for worker in self.training:
            worker.version += turns

    @precondition(lambda self: self.is_whole and all(w.is_level for w in self.training))
    @rule(pick=PICK, got_it=st.sets(st.integers(0, 8)))
    def lose_in_a_turn(self, pick: int, got_it: set[int]) -> None:
        """A member is lost in the middle of a turn, whose sum has reached only some."""
        for place, worker in enumerate(self.training):
            worker.version += place in got_it
        self.lose(self.some(pick, self.training))

    @precondition(lambda self: self.workers)
    @rule(pick=PICK)
    def lose_any(self, pick: int) -> None:
        self.lose(self.some(pick, list(self.workers.values())))

    def lose(self, worker: Worker) -> None:
        del self.workers[worker.index]
        assert self.membership.lost(worker.index)
        assert not self.membership.lost(worker.index)
        self.form()

    @precondition(lambda self: self.workers)
    @rule(pick=PICK)
    def drain(self, pick: int) -> None:
        """A worker asks to leave. A member stays until others have what it has."""
        worker = self.some(pick, list(self.workers.values()))
        is_member = bool(self.views) and worker.index in self.views[-1].indices
        self.membership.drain(worker.index)
        assert self.membership.knows(worker.index) == is_member
        if not is_member:
            self.expelled.append(self.workers.pop(worker.index))
        self.form()

    @precondition(lambda self: self.training)
    @rule(pick=PICK, may_admit=st.booleans())
    def regroup(self, pick: int, may_admit: bool) -> None:
        """A member does what it is told: it comes when there is reason to."""
        worker = self.some(pick, self.training)
        orders = self.membership.beat(worker.index, self.now)
        assert not orders.leave
        gone = not self.views[-1].indices <= set(self.workers)
        assert orders.abort >= gone
        if orders.abort or orders.pause or self.membership.is_broken:
            self.arrive(worker, may_admit=may_admit, broken=gone)

    @precondition(lambda self: self.training)
    @rule(may_admit=st.booleans())
    def all_regroup(self, may_admit: bool) -> None:
        for _ in range(len(self.training)):
            if self.training and self.membership.is_broken:
                self.regroup(0, may_admit)
        if self.is_whole:
            self.level()

    @precondition(lambda self: self.waiting)
    @rule(pick=PICK)
    def call_again(self, pick: int) -> None:
        worker = self.some(pick, self.waiting)
        self.arrive(worker, may_admit=worker.may_admit)

    @precondition(lambda self: self.training)
    @rule(pick=PICK)
    def ask_again_for_this_view(self, pick: int) -> None:
        """The answer was lost on its way: the call comes twice, with the number from before."""
        worker = self.some(pick, self.training)
        before = self.membership.is_broken
        assert self.membership.arrive(
            worker.member, worker.number - 1, worker.version, self.now, may_admit=True
        )
        assert self.membership.is_broken == before
        self.form()

    # --- time, the user, and the master ---

    @rule(seconds=st.sampled_from([0.1, TIMEOUT_S / 2, 2 * TIMEOUT_S]), silent=st.sets(PICK))
    def pass_time(self, seconds: float, silent: set[int]) -> None:
        """Time passes; all but some say that they live."""
        self.now += seconds
        ready = [w for w in self.workers.values() if w.is_ready]
        quiet = {self.some(pick, ready).index for pick in silent} if ready else set()
        for worker in ready:
            if worker.index not in quiet:
                assert not self.membership.beat(worker.index, self.now).leave
        expelled = self.membership.expire(self.now)
        assert set(expelled) <= quiet
        assert seconds <= TIMEOUT_S or set(expelled) == quiet
        for index in expelled:
            self.expelled.append(self.workers.pop(index))
        self.form()

    @precondition(lambda self: self.expelled)
    @rule(pick=PICK)
    def come_back_late(self, pick: int) -> None:
        worker = self.some(pick, self.expelled)
        assert self.membership.beat(worker.index, self.now).leave
        assert not self.membership.arrive(
            worker.member, worker.number, worker.version + 9, self.now, may_admit=True
        )
        self.membership.start(worker.index)
        assert not self.membership.knows(worker.index)
        self.form()

    @rule(minimum=st.integers(1, 3), more=st.integers(0, 3))
    def scale(self, minimum: int, more: int) -> None:
        self.bounds = (minimum, minimum + more)
        self.membership.scale(*self.bounds)
        self.form()

    @rule(calls=st.permutations(range(8)))
    def restart_the_master(self, calls: list[int]) -> None:
        """Who waited calls again, in any order; some have not yet when the next thing happens."""
        snapshot = json.loads(json.dumps(self.membership.snapshot()))
        self.membership = self.fresh()
        self.membership.restore(snapshot, self.now)
        assert self.membership.snapshot() == snapshot
        waiting = self.waiting
        for place in calls[:4]:
            if place < len(waiting) and waiting[place].waits:
                self.arrive(waiting[place], may_admit=waiting[place].may_admit)

    # --- what always holds ---

    @invariant()
    def everybody_who_lives_is_known(self) -> None:
        if hasattr(self, "workers"):
            assert all(self.membership.knows(i) for i in self.workers)
            staying = len(self.workers.keys() - self.membership.drained)
            assert self.membership.num_missing == max(0, self.membership.maximum - staying)

    @invariant()
    def members_that_are_level_have_one_state(self) -> None:
        if hasattr(self, "workers"):
            level = [w for w in self.training if w.is_level]
            assert len({w.lineage for w in level}) <= 1

    def teardown(self) -> None:
        """However it ended: when everybody comes, and there are enough, they go on."""
        if not hasattr(self, "workers"):
            return
        while self.membership.num_missing:
            self.start()
        for worker in list(self.workers.values()):
            if worker.index in self.workers:
                worker.is_ready = True
                before = len(self.views)
                self.arrive(worker, may_admit=True)
                if len(self.views) > before:
                    return
        waiting = self.waiting
        self.now += PATIENCE_S + 1
        self.form()
        assert self.views and {w.index for w in waiting} >= self.views[-1].indices
        assert self.is_whole, "nobody goes on"


TestJob = Job.TestCase
TestJob.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
