"""The master of a job: who is in the group, what all have to know, what happened. It has no model and no data.

It does nothing by itself: workers and the process that started it call it, and wait in its methods. What it has to know
after its process was lost is in its journal; whoever was waiting calls again, which Ray sees to.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elasticdl.job.parse import workers_text
from elasticdl.runtime.elastic.membership import Member, Membership, Orders, View
from elasticdl.tracking.events import TRANSIENT

__all__ = ["MILESTONES", "Master", "beat_s"]

TICK_S = 0.2
MEETINGS_KEPT = 4
LISTEN_S = 2.0
"""How long a worker's call waits for something new: so often it says that it lives."""
BEATS_A_SECOND = 400
"""More than so many calls of all workers together are a burden; with many, each waits longer."""
A_LIFE = 10**9
"""More events than a master has in its life."""
MILESTONES = ("epoch_audit", "evaluation", "epoch")
"""What must be told of a training, and once: a leader that is lost may not have told it, or may have just before."""


def beat_s(workers: int, timeout_s: float) -> float:
    """How often each of so many workers says that it lives."""
    return min(max(LISTEN_S, workers / BEATS_A_SECOND), timeout_s / 5)


class Master:
    """An actor. Every method may be called again with the same arguments, and then gives the same answer.

    Args:
      journal: where it writes what it must not forget.
      workers: the fewest and the most that are wanted.
      timeout_s: who says nothing for so long is expelled.
    """

    def __init__(self, journal: str, workers: tuple[int, int], timeout_s: float) -> None:
        self._asked = workers
        self._timeout_s = timeout_s
        self._membership = Membership(*go_on_with(*workers), first=workers[0], timeout_s=timeout_s)
        self._journal = _Journal(Path(journal))
        self._events: dict[int, dict[str, Any]] = {}
        """Those that nobody has fetched yet, by their number."""
        self._last = 0
        self._step = 0
        """The last one that was told of."""
        self._told: set[tuple[str, int]] = set()
        """Which events of whom are known: they may be sent twice."""
        self._milestones: set[tuple[Any, ...]] = set()
        """Those of the training since it was begun, or taken up from a checkpoint."""
        self._meetings: dict[tuple[int, int], dict[int, Any]] = {}
        self._changed = asyncio.Condition()
        self._complete: dict[tuple[int, int], list[Any]] = {}
        self._ended = False
        self._ticking: asyncio.Task[None] | None = None
        self._comes_back()

    def _comes_back(self) -> None:
        """Go on where a master that was lost has been."""
        snapshot, self._events, meetings = self._journal.read()
        self._complete = {key: given[0] for key, given in meetings.items() if given}
        self._forgotten = meetings.keys() - self._complete.keys()
        # Some were fetched that the journal does not have: what is new gets numbers above all that can be.
        self._last = (max(self._events, default=0) // A_LIFE + 1) * A_LIFE
        told = [event for event in self._events.values() if "of" in event]
        self._told = {(event["of"], event["seq"]) for event in told}
        for event in told:
            self._is_new(event)
        if snapshot is not None:
            self._asked = tuple(snapshot["asked"])
            self._membership.restore(snapshot, time.monotonic())
            self._emit("master_restarted", pid=os.getpid())

    # --- the process that started the job ---

    async def watch(self, after: int) -> dict[str, Any]:
        """New events, and how many workers are to be started; waits a little for something new."""
        self._ticking = self._ticking or asyncio.create_task(self._tick())
        self._events = {n: event for n, event in self._events.items() if n > after}
        async with self._changed:
            if not self._events and not self._num_missing:
                await self._wait(1.0)
        return {
            "events": {n: _shown(event) for n, event in self._events.items()},
            "missing": self._num_missing,
            "members": self._view_indices(),
        }

    @property
    def _num_missing(self) -> int:
        return 0 if self._ended else self._membership.num_missing

    def _view_indices(self) -> list[int]:
        view = self._membership.view
        return [] if view is None else sorted(view.indices)

    async def start(self, index: int) -> None:
        """A worker is about to be started."""
        self._membership.start(index)
        self._note()
        self._tell_who_is_ready()

    async def lost(self, index: int, reason: str) -> None:
        """A worker's process is gone."""
        if self._membership.lost(index):
            self._tell_lost(index, reason)
            await self._change()

    async def stop(self) -> None:
        """The job is to stop at the next step, with a checkpoint."""
        self._membership.stops = True
        self._note()
        await self._change()

    async def scale(self, least: int, most: int) -> None:
        """Another number of workers is wanted, or a range."""
        before, self._asked = self._asked, (least, most)
        self._membership.scale(*go_on_with(least, most))
        self._note()
        self._emit("scaled", num_workers=workers_text(self._asked), before=workers_text(before))
        await self._change()

    async def end(self) -> None:
        """The training is done: no more workers are wanted."""
        self._ended = True

    async def abandoned(self) -> dict[str, Any]:
        """Nobody is left of a job that was to stop: what came of it."""
        return {"reason": "interrupted", "steps": self._step, "history": {}, "metrics": {}}

    # --- the workers ---

    async def beat(self, index: int, known: Orders) -> Orders:
        """A worker lives; what it has to know, as soon as that is something new."""
        now = time.monotonic()
        orders = self._membership.beat(index, now)
        until = now + beat_s(len(self._membership.alive), self._timeout_s)
        async with self._changed:
            while orders == known and (left := until - time.monotonic()) > 0:
                await self._wait(left)
                orders = self._membership.orders(index)
        return orders

    async def drain(self, index: int) -> None:
        """A worker asks to leave, since its machine is wanted back."""
        self._membership.drain(index)
        self._note()
        await self._change()

    async def arrive(
        self, member: Member, number: int, version: int, may_admit: bool, broken: bool
    ) -> View | None:
        """Wait for the view after `number`; None for who is not wanted any more."""
        membership = self._membership
        membership.arrive(
            member, number, version, time.monotonic(), may_admit=may_admit, broken=broken
        )
        if number == 0:
            self._note()
        self._tell_who_is_ready()
        await self._change()
        async with self._changed:
            while not self._is_in(member.index, number):
                if not membership.knows(member.index):
                    return None
                await self._wait(5.0)
        return membership.view

    def _is_in(self, index: int, number: int) -> bool:
        view = self._membership.view
        return view is not None and view.number > number and index in view.indices

    async def meet(self, index: int, number: int, key: int, payload: Any) -> list[Any] | None:
        """What all members of a view give, by rank, as soon as all have; None when the view has ended.

        Either all of them get it or, when one is lost before, none does. What is plain stays known when the master
        is lost; of the rest some may then have got it, and the others are told that the view has ended.
        """
        view, meeting = self._membership.view, self._meetings.setdefault((number, key), {})
        meeting[index] = payload
        if view is not None and view.number == number and meeting.keys() >= view.indices:
            self._close_meeting((number, key), [meeting[i] for i in sorted(view.indices)])
            await self._change()
        async with self._changed:
            while (number, key) not in self._complete:
                if (
                    (number, key) in self._forgotten
                    or self._membership.view is not view
                    or self._is_over(number)
                ):
                    return None
                await self._wait(5.0)
        return self._complete[number, key]

    def _is_over(self, number: int) -> bool:
        view = self._membership.view
        return view is None or view.number != number or self._membership.is_broken

    def _close_meeting(self, key: tuple[int, int], given: list[Any]) -> None:
        if key in self._complete:
            return
        self._complete[key] = given
        if all(one is None or isinstance(one, bool | int | str) for one in given):
            self._journal.write({"meeting": [*key, given]})
        else:
            self._journal.write({"meeting": [*key]})
        for old in sorted(self._complete)[:-MEETINGS_KEPT]:
            del self._complete[old]
            self._meetings.pop(old, None)

    async def tell(self, of: str, events: list[dict[str, Any]]) -> None:
        """Events of a worker, each with a number."""
        for event in events:
            if (of, event["seq"]) not in self._told:
                self._told.add((of, event["seq"]))
                if self._is_new(event):
                    self._keep({**event, "of": of})
        await self._change()

    def _is_new(self, event: Mapping[str, Any]) -> bool:
        """Note a milestone; False for one that another member told of already."""
        if event["event"] == "run_started":
            self._milestones.clear()
        if event["event"] not in MILESTONES:
            return True
        key = (event["event"], event.get("epoch"), event.get("step"))
        is_new = key not in self._milestones
        self._milestones.add(key)
        return is_new

    # --- what changes ---

    async def _tick(self) -> None:
        """Whoever says nothing is not heard by anybody: look at the clock from time to time."""
        while True:
            await asyncio.sleep(TICK_S)
            silent = self._membership.expire(time.monotonic())
            for index in silent:
                self._tell_lost(index, "it does not answer")
            if silent or self._membership.newcomers:
                self._form()
                await self._change()

    async def _change(self) -> None:
        self._form()
        async with self._changed:
            self._changed.notify_all()

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def _form(self) -> None:
        before = self._membership.view
        alive, asked = self._membership.alive, self._membership.drained
        view = self._membership.form(time.monotonic())
        if view is None:
            return
        self._note()
        known = set() if before is None else before.indices
        for index in sorted((known & alive) - view.indices):
            why = "it was asked to (SIGTERM)" if index in asked else "fewer are wanted"
            self._emit("worker_left", worker=f"worker-{index}", reason=why)
        for member in view.members:
            if member.index not in known:
                self._emit("worker_joined", worker=member.name, pid=member.pid, node=member.node)

    def _tell_who_is_ready(self) -> None:
        wanted = self._membership.waits_for
        if wanted is not None:
            ready = min(wanted, len(self._membership.newcomers))
            self._emit("waiting", message=f"Waiting for workers: {ready} of {wanted} ready")

    def _tell_lost(self, index: int, reason: str) -> None:
        self._emit("worker_lost", worker=f"worker-{index}", reason=reason)
        self._note()

    def _emit(self, event: str, **fields: Any) -> None:
        self._keep({"time": round(time.time(), 3), "event": event, **fields})

    def _keep(self, event: dict[str, Any]) -> None:
        self._last += 1
        self._step = event.get("step", self._step)
        self._events[self._last] = event
        if event["event"] not in TRANSIENT:
            self._journal.write({"event": event, "n": self._last})

    def _note(self) -> None:
        state = {**self._membership.snapshot(), "asked": self._asked}
        self._journal.write({"membership": state})


def go_on_with(least: int, most: int) -> tuple[int, int]:
    """A number alone says with how many to begin; who is lost must not stop the others."""
    return (1 if least == most else least, most)


def _shown(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("of", "seq")}


class _Journal:
    """Lines of JSON; what was written last of the membership counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[dict[str, Any] | None, dict[int, Any], dict[tuple[int, int], Any]]:
        membership, events, meetings = None, {}, {}
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:  # the last one, cut short
                    continue
                membership = entry.get("membership", membership)
                if "event" in entry:
                    events[entry["n"]] = entry["event"]
                if "meeting" in entry:
                    number, key, *given = entry["meeting"]
                    meetings[number, key] = given
        self._file = self._path.open("a", encoding="utf-8")
        return membership, events, meetings

    def write(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()
