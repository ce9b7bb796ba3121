"""A group of threads in one process: the real membership, and sums and meetings that can lose a member at any point.

Every decision depends on a seed and on how many things were done together before it, so a schedule can be run again.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from elasticdl.engine.group import Change, GroupBroken, State
from elasticdl.runtime.elastic.membership import NOTHING, Member, Membership, Orders, View

STUCK_S = 30.0
BEFORE, DURING, AFTER, EXPELLED = "before", "during", "after", "expelled"


class Killed(BaseException):
    """This thread's process is gone: no more of its code runs."""


class Left(Exception):
    """This member is not wanted any more."""


@dataclass(frozen=True)
class Fault:
    """What happens to whom, when so many things were done together."""

    moment: str
    victims: tuple[int, ...]
    """Ranks, modulo the group's size."""
    lucky: frozenset[int] = frozenset()
    """Of who is in the middle of it with them: the ranks that get the sum all the same."""


@dataclass
class _Shared:
    """Something that is being done together."""

    fault: Fault | None
    given: dict[int, Any] = field(default_factory=dict)
    outcome: list[Any] | None = None
    without: set[int] = field(default_factory=set)
    """Who does not get the outcome."""


class MeetingPoint:
    """The master and the collectives.

    Args:
      sums, meetings: faults by how many sums (meetings) there were before.
      joins: a newcomer is ready after so many sums.
      scales: other bounds after so many sums.
      stop: after so many sums the job is to stop.
    """

    def __init__(
        self,
        membership: Membership,
        live: Callable[[ThreadGroup], None],
        *,
        sums: dict[int, Fault] | None = None,
        meetings: dict[int, Fault] | None = None,
        joins: tuple[int, ...] = (),
        scales: dict[int, tuple[int, int]] | None = None,
        stop: int | None = None,
        check: Callable[[list[Any]], None] = lambda given: None,
    ) -> None:
        self.membership = membership
        self.condition = threading.Condition()
        self.views: list[View] = []
        self.num_lost = 0
        self.errors: list[BaseException] = []
        self._live = live
        self._faults = {"sum": dict(sums or {}), "meeting": dict(meetings or {})}
        self._joins = sorted(joins)
        self._scales = dict(scales or {})
        self._stop = stop
        self._check = check
        self._shared: dict[tuple[str, int, int], _Shared] = {}
        self._counts = {"sum": 0, "meeting": 0}
        self._loading: set[int] = set()
        self._threads: list[threading.Thread] = []
        self._next = 0
        self._ended = False

    # --- threads ---

    def run(self, num_workers: int) -> None:
        """Until nobody lives; raises what a member raised."""
        with self.condition:
            for _ in range(num_workers):
                self._start()
        for thread in self._threads:  # grows meanwhile
            thread.join(2 * STUCK_S)
            assert not thread.is_alive(), "a member hangs"
        if self.errors:
            raise self.errors[0]

    def _start(self) -> None:
        index, self._next = self._next, self._next + 1
        self.membership.start(index)
        self._loading.add(index)
        group = ThreadGroup(self, index)
        thread = threading.Thread(target=self._run_one, args=(group,), name=group.name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run_one(self, group: ThreadGroup) -> None:
        try:
            self._live(group)
        except (Killed, Left):
            pass
        except BaseException as error:
            self.errors.append(error)
            self._ended = True
        with self.condition:
            self._lose(group.index)
            self._changed()

    def end(self) -> None:
        """A member is at the end of the training: who waits to come in is not wanted."""
        with self.condition:
            self._ended = True
            self.condition.notify_all()

    # --- what the master does ---

    def beat(self, index: int) -> Orders:
        with self.condition:
            return self.membership.beat(index, 0.0)

    def arrive(self, group: ThreadGroup, version: int, may_admit: bool, broken: bool) -> View:
        with self.condition:
            self._loading.discard(group.index)
            member = Member(group.index, "")
            before = group.number
            self.membership.arrive(member, before, version, 0.0, may_admit=may_admit, broken=broken)
            self._changed()
            while not self._is_in(group.index, before):
                if not self.membership.knows(group.index):
                    raise Left
                if self._ended and version == NOTHING:
                    raise Left
                self._wait()
            view = self.membership.view
            assert view is not None
            return view

    def _is_in(self, index: int, number: int) -> bool:
        view = self.membership.view
        return view is not None and view.number > number and index in view.indices

    def _changed(self) -> None:
        if (
            not self._loading
        ):  # who is ready arrives before anything else happens: schedules can be repeated
            founds = not self.membership._live_members
            view = None if self._ended and founds else self.membership.form(0.0)
            if view is not None:
                self.views.append(view)
            elif self._nobody_goes_on and not self._ended:
                self._start()
        self.condition.notify_all()

    @property
    def _nobody_goes_on(self) -> bool:
        """Whether everybody waits for newcomers."""
        membership = self.membership
        members = membership._live_members
        return members <= set(membership._arrived) and bool(membership.num_missing)

    def _lose(self, index: int) -> None:
        self._loading.discard(index)
        self.num_lost += self.membership.lost(index)

    def _wait(self) -> None:
        assert self.condition.wait(STUCK_S), f"stuck: {self.membership.snapshot()}"

    # --- what is done together ---

    def share(self, kind: str, group: ThreadGroup, key: int, payload: Any) -> list[Any]:
        """What all gave, by rank; raises `GroupBroken` or, in who is lost, `Killed`."""
        with self.condition:
            view = group.view
            while self._loading:
                self._wait()
            one = self._begun(kind, view, key)
            rank = group.rank
            victims = {r % len(view.members) for r in one.fault.victims} if one.fault else set()
            if one.fault and one.fault.moment in (BEFORE, EXPELLED) and rank in victims:
                self._lose(group.index)
                self._changed()
                # Who is expelled comes back late to a broken group; when it was alone its beat ends it.
                if one.fault.moment == BEFORE or len(view.members) == 1:
                    raise Killed
                raise GroupBroken("late")
            one.given[group.index] = payload
            if one.given.keys() >= view.indices and self.membership.view is view:
                self._complete(kind, one, view, victims)
            while one.outcome is None:
                if self._cannot_complete(kind, view):
                    raise GroupBroken("a member is gone")
                self._wait()
            if rank in victims and one.fault and one.fault.moment in (DURING, AFTER):
                raise Killed
            if rank in one.without:
                raise GroupBroken("a member was lost on the way")
            return one.outcome

    def _begun(self, kind: str, view: View, key: int) -> _Shared:
        where = (kind, view.number, key)
        if where not in self._shared:
            count = self._counts[kind]
            self._counts[kind] += 1
            fault = self._faults[kind].get(count)
            self._shared[where] = _Shared(fault)
        return self._shared[where]

    def _schedule(self, count: int) -> None:
        for due in [n for n in sorted(self._scales) if n <= count]:
            self.membership.scale(*self._scales.pop(due))
        if self._stop is not None and count >= self._stop:
            self.membership.stops = True
        while self._joins and self._joins[0] <= count:
            self._joins.pop(0)
            if self.membership.num_missing:
                self._start()

    def _complete(self, kind: str, one: _Shared, view: View, victims: set[int]) -> None:
        one.outcome = [one.given[m.index] for m in view.members]
        try:
            self._check(one.outcome)
        except AssertionError as error:
            self.errors.append(error)
        if one.fault is not None and victims:
            if one.fault.moment == DURING and kind == "sum":
                one.without = set(range(len(view.members))) - one.fault.lucky
            for rank in victims:
                self._lose(view.members[rank].index)
        if kind == "sum":
            self._schedule(self._counts["sum"])
        self._changed()

    def _cannot_complete(self, kind: str, view: View) -> bool:
        membership = self.membership
        if membership.view is not view:
            return True
        # Who waits for a sum is told when something is torn; who meets at the master, of any that arrive.
        return membership._is_torn if kind == "sum" else membership.is_broken


class ThreadGroup:
    """`engine.Group` for one thread."""

    device = ""

    def __init__(self, point: MeetingPoint, index: int) -> None:
        self.point = point
        self.index = index
        self.name = f"worker-{index}"
        self._view: View | None = None
        self._sums = self._meeting = 0
        self._was_broken = False

    @property
    def view(self) -> View:
        assert self._view is not None
        return self._view

    @property
    def number(self) -> int:
        return self._view.number if self._view is not None else 0

    @property
    def rank(self) -> int:
        return [m.index for m in self.view.members].index(self.index)

    @property
    def size(self) -> int:
        return len(self.view.members)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(m.name for m in self.view.members)

    @property
    def wants_pause(self) -> bool:
        return self.point.beat(self.index).pause

    @property
    def wants_stop(self) -> bool:
        return self.point.beat(self.index).stop

    def reduce(self, buffer: Any, keys: Any) -> Any:
        """Here: what everybody gave, by rank."""
        self._sums += 1
        return self.point.share("sum", self, self._sums, buffer)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except GroupBroken:
            self._was_broken = True
            raise

    def gather(self, payload: Any) -> list[Any]:
        self._meeting += 1
        with self.guarded():
            return self.point.share("meeting", self, self._meeting, payload)

    def join(self, found: Callable[[], int], give: Callable[[bool], State]) -> Change:
        return self._arrive(NOTHING, give, True, found)

    def regroup(self, version: int, give: Callable[[bool], State], *, may_admit: bool) -> Change:
        return self._arrive(version, give, may_admit, None)

    def _arrive(
        self,
        version: int,
        give: Callable[[bool], State],
        may_admit: bool,
        found: Callable[[], int] | None,
    ) -> Change:
        while True:
            broken, self._was_broken = self._was_broken, False
            self._view = self.point.arrive(self, version, may_admit, broken)
            self._sums = self._meeting = 0
            try:
                return self._level(version, give, found)
            except GroupBroken:
                continue

    def _level(
        self, version: int, give: Callable[[bool], State], found: Callable[[], int] | None
    ) -> Change:
        view, given = self.view, None
        if view.truth == self.index:
            if view.founds:
                assert found is not None
                version = found()
            # Copies, as between processes: of what it is now, and for each its own.
            states = {whole: copy.deepcopy(give(whole)) for whole in set(view.behind.values())}
            given = (version, states)
        met = self.gather(given)
        version, states = next(one for one in met if one is not None)
        state = states[view.behind[self.index]] if self.index in view.behind else None
        return Change(self.names, version, copy.deepcopy(state), view.truth == self.index)
