"""Who trains together: pure bookkeeping, with no processes, no clock of its own and no framework.

A worker is started, gets ready, and waits; a *view* is a numbered membership. A view ends when a member is lost,
is to leave, or somebody waits to come in: its members arrive here, each with the turn that it has taken last, and
when all who live have arrived there is a new view. The member that is furthest is the truth: the others take over
its state. When nobody has any state, the first of the new members founds the training: from the last checkpoint, or
from its beginning.

    membership = Membership(minimum=1, maximum=3, first=3)
    for index in range(membership.num_missing):
        membership.start(index)
    membership.arrive(member, number, version, now, may_admit=True)
    if view := membership.form(now):
        ...tell its members...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOTHING", "Member", "Membership", "Orders", "View"]

NOTHING = -1
"""The version of who has no state yet."""
TORN_S = 5.0
"""How long a member may be silent when others have found that something done together has failed."""


@dataclass(frozen=True)
class Member:
    """A worker that can be part of a view."""

    index: int
    """Its own, for its life; never used again."""
    address: str
    pid: int = 0
    node: str = ""

    @property
    def name(self) -> str:
        return f"worker-{self.index}"


@dataclass(frozen=True)
class View:
    """A membership. The members' ranks are their places."""

    number: int
    members: tuple[Member, ...]
    truth: int
    """The index of the member whose state counts."""
    behind: Mapping[int, bool] = field(default_factory=dict)
    """The members that need state, and whether they need all of it."""
    founds: bool = False
    """Whether nobody has any: the truth makes it."""

    @property
    def indices(self) -> set[int]:
        return {member.index for member in self.members}


@dataclass(frozen=True)
class Orders:
    """What a worker is told when it says that it lives."""

    leave: bool = False
    """It is no member any more, and nobody waits for it."""
    pause: bool = False
    """The group is to meet after the next turn."""
    abort: bool = False
    """Somebody does not answer: what is being done together is to be given up."""
    stop: bool = False
    number: int = 0
    """Of the view that this is about."""


@dataclass(frozen=True)
class _Arrival:
    member: Member
    version: int
    may_admit: bool
    broken: bool
    since: float
    """When it came."""


class Membership:
    """The state machine of one job.

    Args:
      minimum: fewer than so many do not train.
      maximum: more than so many are not wanted.
      first: with so many the training begins, if they come within `patience_s`.
      timeout_s: who says nothing for so long is expelled.
    """

    def __init__(
        self,
        minimum: int,
        maximum: int,
        *,
        first: int | None = None,
        timeout_s: float = 30.0,
        patience_s: float = 30.0,
    ) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.view: View | None = None
        self.stops = False
        self._first = max(minimum, first or minimum)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._next = 0
        self._number = 0
        self._alive: dict[int, float] = {}
        """Every worker that was started and is not lost, and when it was heard of last (members, and who waits)."""
        self._arrived: dict[int, _Arrival] = {}
        self._leaving: set[int] = set()
        self._drained: set[int] = set()
        """Who asked to leave, and does as soon as others have what it has."""

    # --- workers ---

    @property
    def num_missing(self) -> int:
        """How many workers are to be started."""
        return max(0, self.maximum - len(self._staying)) if not self.stops else 0

    @property
    def _staying(self) -> set[int]:
        return self._alive.keys() - self._drained

    @property
    def alive(self) -> frozenset[int]:
        """Every worker that was started and is not lost."""
        return frozenset(self._alive)

    @property
    def drained(self) -> frozenset[int]:
        """Who asked to leave."""
        return frozenset(self._drained)

    def start(self, index: int) -> None:
        """A worker is being started, under an index that none had before."""
        if index >= self._next:
            self._next = index + 1
            self._alive[index] = float("inf")  # silent until it is ready: loading takes its time

    def lost(self, index: int) -> bool:
        """A worker is gone; says whether it was known to live."""
        was_alive = self._alive.pop(index, None) is not None
        self._arrived.pop(index, None)
        self._leaving.discard(index)
        self._drained.discard(index)
        return was_alive

    def drain(self, index: int) -> None:
        """A worker asks to leave: its machine is wanted back. Another is to be started at once."""
        if index in self._live_members:
            self._drained.add(index)
        else:  # nobody needs what it has
            self.lost(index)

    def expire(self, now: float) -> list[int]:
        """Expel the members, and those who wait, that have said nothing for too long.

        When members have found that somebody is gone, who is silent then is most likely the one: the others do not
        wait for long.
        """
        torn_s = max(TORN_S, len(self._alive) / 100)  # many workers say less often that they live
        limit = min(self._timeout_s, torn_s) if self._is_torn else self._timeout_s
        silent = [i for i, heard in self._alive.items() if now - heard > limit]
        for index in silent:
            self.lost(index)
        return silent

    def scale(self, minimum: int, maximum: int) -> None:
        """Another number of workers is wanted."""
        self.minimum, self.maximum = minimum, maximum
        self._first = minimum

    # --- the members' calls ---

    def beat(self, index: int, now: float) -> Orders:
        """A worker lives."""
        if index in self._alive:
            self._alive[index] = now
        return self.orders(index)

    def orders(self, index: int) -> Orders:
        """What a worker has to know."""
        if index not in self._alive:
            return Orders(leave=True)
        is_member = self.view is not None and index in self.view.indices
        if not is_member or index in self._arrived:
            return Orders(stop=self.stops)
        assert self.view is not None
        return Orders(
            pause=self._wants_change(),
            abort=self._is_torn,
            stop=self.stops,
            number=self.view.number,
        )

    def arrive(
        self,
        member: Member,
        number: int,
        version: int,
        now: float,
        *,
        may_admit: bool,
        broken: bool = False,
    ) -> bool:
        """A worker waits for the next view; False when it is not known (any more).

        Args:
          number: of the view that it comes from; 0 for a newcomer.
          version: the turn that it has taken last.
          may_admit: whether newcomers can take over its state where it stands.
          broken: whether it comes because something that was done together has failed.
        """
        if member.index not in self._alive:
            return False
        self._alive[member.index] = now
        is_old = self.view is not None and number < self.view.number
        if not (is_old and self.view is not None and member.index in self.view.indices):
            before = self._arrived.get(member.index)
            since = now if before is None else before.since
            self._arrived[member.index] = _Arrival(member, version, may_admit, broken, since)
        return True

    def form(self, now: float) -> View | None:
        """A new view, if it is time for one."""
        members = self._live_members
        survivors = [self._arrived[i] for i in sorted(members) if i in self._arrived]
        newcomers = [self._arrived[i] for i in sorted(self._arrived) if i not in members]
        if len(survivors) < len(members) or not self._arrived:
            return None
        survivors.sort(key=lambda a: -a.version)  # who is furthest stays, however few are wanted
        may_admit = all(arrival.may_admit for arrival in survivors)
        chosen = self._chosen(survivors, newcomers) if may_admit else survivors
        if len(chosen) < (self._wanted(bool(survivors), now) if may_admit else 1):
            return None
        self._leaving |= {a.member.index for a in survivors if a not in chosen}
        return self._make(chosen)

    def _chosen(self, survivors: list[_Arrival], newcomers: list[_Arrival]) -> list[_Arrival]:
        """Who is in the next view: without those who asked to leave, if there are others with all that they have."""
        staying = [a for a in survivors if a.member.index not in self._drained]
        if staying and staying[0].version == survivors[0].version:
            without = [*staying, *newcomers][: self.maximum]
            if len(without) >= self.minimum or self.stops:
                return without
        room = self.maximum + len(survivors) - len(staying)  # who leaves hands over first
        return (survivors + newcomers)[:room]

    def _wanted(self, goes_on: bool, now: float) -> int:
        """With how many a view begins: the first one, and one after all were lost, waits for some."""
        waited = now - min(arrival.since for arrival in self._arrived.values())
        if self.stops:
            return 1
        if goes_on or waited > self._patience_s:
            return self.minimum
        return min(self._first, self.maximum)

    def _make(self, chosen: list[_Arrival]) -> View:
        truth = max(chosen, key=lambda a: (a.version, -a.member.index))
        founds = truth.version == NOTHING
        behind = {
            a.member.index: a.version == NOTHING
            for a in chosen
            if a is not truth and (founds or a.version < truth.version)
        }
        self._number += 1
        self.view = View(
            self._number,
            tuple(sorted((a.member for a in chosen), key=lambda m: m.index)),
            truth.member.index,
            behind,
            founds,
        )
        for arrival in chosen:
            self._arrived.pop(arrival.member.index)
        for index in self._leaving:
            self._arrived.pop(index, None)
            self._alive.pop(index, None)
        self._drained -= self._leaving
        self._leaving = set()
        return self.view

    # --- what is known ---

    def knows(self, index: int) -> bool:
        """Whether a worker was started and is not lost."""
        return index in self._alive

    @property
    def is_broken(self) -> bool:
        """Whether the view has ended: what its members would do together has to wait for the next."""
        if self.view is None:
            return True
        return bool(self._gone_members) or any(i in self._arrived for i in self.view.indices)

    @property
    def _live_members(self) -> set[int]:
        return set() if self.view is None else {i for i in self.view.indices if i in self._alive}

    @property
    def _gone_members(self) -> set[int]:
        return set() if self.view is None else self.view.indices - set(self._alive)

    @property
    def _is_torn(self) -> bool:
        """Whether members may wait for one that will not come."""
        here = (self._arrived.get(i) for i in self._live_members)
        return bool(self._gone_members) or any(a is not None and a.broken for a in here)

    @property
    def waits_for(self) -> int | None:
        """With how many the training begins; None when it goes on already."""
        return None if self._live_members else min(self._first, self.maximum)

    @property
    def newcomers(self) -> list[int]:
        """Who waits to come in."""
        members = self._live_members
        return [i for i in self._arrived if i not in members]

    def _wants_change(self) -> bool:
        members, newcomers = self._live_members, bool(self.newcomers)
        size, staying = len(members), len(members - self._drained)
        if not self.minimum <= size <= self.maximum:
            return True
        if staying < size and (newcomers or staying >= max(1, self.minimum)):
            return True
        return newcomers and size < self.maximum

    # --- the journal ---

    def snapshot(self) -> dict[str, Any]:
        """All that a master which comes back has to know, as JSON; workers say the rest again."""
        return {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "next": self._next,
            "number": self._number,
            "alive": sorted(self._alive),
            "ready": sorted(i for i, heard in self._alive.items() if heard < float("inf")),
            "stops": self.stops,
            "drained": sorted(self._drained),
            "view": None
            if self.view is None
            else {
                "members": [vars(m) for m in self.view.members],
                "truth": self.view.truth,
                "behind": {str(i): whole for i, whole in self.view.behind.items()},
                "founds": self.view.founds,
            },
        }

    def restore(self, snapshot: Mapping[str, Any], now: float) -> None:
        """Go on as the one that was lost."""
        self.minimum, self.maximum = snapshot["minimum"], snapshot["maximum"]
        self._next, self._number = snapshot["next"], snapshot["number"]
        self.stops = snapshot["stops"]
        view = snapshot["view"]
        if view is not None:
            self.view = View(
                self._number,
                tuple(Member(**member) for member in view["members"]),
                view["truth"],
                {int(i): whole for i, whole in view["behind"].items()},
                view["founds"],
            )
            self._first = self.minimum
        self._drained = set(snapshot["drained"])
        ready = set(snapshot["ready"])
        self._alive = {i: now if i in ready else float("inf") for i in snapshot["alive"]}
