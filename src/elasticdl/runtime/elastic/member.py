"""A worker's side of the group: it lives, it waits for views, it takes part."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from elasticdl.engine.group import Change, GroupBroken, State
from elasticdl.runtime.elastic.collective import Collective
from elasticdl.runtime.elastic.membership import NOTHING, Member, Orders, View

__all__ = ["Left", "RayGroup"]

AGAIN_S = 0.5


class Left(Exception):
    """This worker is no member any more, and is not wanted."""


class RayGroup:
    """`engine.Group` over a master and TensorFlow's collectives.

    Args:
      master: the master's handle.
      member: who this is.
      collective: this process's place among TensorFlow's tasks.
    """

    def __init__(self, master: Any, member: Member, collective: Collective) -> None:
        self._master = master
        self._member = member
        self._collective = collective
        self._view: View | None = None
        self._orders = Orders()
        self._meeting = 0
        self._was_broken = False
        threading.Thread(target=self._live, name="beats", daemon=True).start()

    @property
    def name(self) -> str:
        return self._member.name

    @property
    def number(self) -> int:
        return self._view.number if self._view is not None else 0

    @property
    def rank(self) -> int:
        if self._view is None:
            return 0
        return [member.index for member in self._view.members].index(self._member.index)

    @property
    def size(self) -> int:
        return len(self._view.members) if self._view is not None else 1

    @property
    def names(self) -> tuple[str, ...]:
        assert self._view is not None
        return tuple(member.name for member in self._view.members)

    @property
    def leads(self) -> bool:
        return self._view is not None and self.rank == 0

    @property
    def device(self) -> str:
        return self._collective.device

    @property
    def remark(self) -> str | None:
        """What to tell the user of the TensorFlow that is here."""
        return self._collective.remark

    @property
    def wants_pause(self) -> bool:
        return self._orders.pause

    @property
    def wants_stop(self) -> bool:
        return self._orders.stop

    def reduce(self, buffer: Any, keys: Any) -> Any:
        return self._collective.reduce(buffer, keys)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            with self._collective.guarded():
                yield
        except GroupBroken:
            self._was_broken = True
            raise

    def gather(self, payload: Any) -> list[Any]:
        self._meeting += 1
        met = self._ask(self._master.meet, self._member.index, self.number, self._meeting, payload)
        if met is None:
            self._was_broken = True
            raise GroupBroken("The group has changed.")
        return list(met)

    def join(self, found: Callable[[], int], give: Callable[[bool], State]) -> Change:
        """Become a member for the first time. `found` begins the training, where nobody has state."""
        return self._arrive(NOTHING, give, may_admit=True, found=found)

    def regroup(self, version: int, give: Callable[[bool], State], *, may_admit: bool) -> Change:
        return self._arrive(version, give, may_admit=may_admit, found=None)

    def _arrive(
        self,
        version: int,
        give: Callable[[bool], State],
        *,
        may_admit: bool,
        found: Callable[[], int] | None,
    ) -> Change:
        while True:
            broken, self._was_broken = self._was_broken, False
            view = self._ask(
                self._master.arrive, self._member, self.number, version, may_admit, broken
            )
            if view is None:
                raise Left
            self._adopt(view)
            try:
                return self._level(view, version, give, found)
            except GroupBroken:
                continue

    def leave(self) -> None:
        """Ask to be no member any more. It is one until the others have met without it."""
        threading.Thread(
            target=self._ask, args=(self._master.drain, self._member.index), daemon=True
        ).start()

    def _adopt(self, view: View) -> None:
        self._collective.form(view.number, {m.index: m.address for m in view.members})
        self._view = view
        self._orders = Orders(stop=self._orders.stop)
        self._meeting = 0

    def _level(
        self,
        view: View,
        version: int,
        give: Callable[[bool], State],
        found: Callable[[], int] | None,
    ) -> Change:
        """The barrier at which all have formed the group, and the state goes to who needs it."""
        import ray

        mine = view.truth == self._member.index
        if mine and view.founds:
            assert found is not None
            version = found()
        given = None
        if mine:
            states = {whole: [ray.put(give(whole))] for whole in set(view.behind.values())}
            given = (version, states)
        met = self.gather(given)
        version, states = next(one for one in met if one is not None)
        state = None
        if self._member.index in view.behind:
            try:
                state = ray.get(states[view.behind[self._member.index]][0])
            except ray.exceptions.RayError as error:
                raise GroupBroken("The state was lost on its way.") from error
        return Change(self.names, version, state, mine)

    def _ask(self, method: Any, *arguments: Any) -> Any:
        import ray

        return ray.get(method.remote(*arguments))

    # --- the thread that says that this process lives ---

    def _live(self) -> None:
        import ray

        orders = Orders()
        while True:
            try:
                orders = ray.get(self._master.beat.remote(self._member.index, orders))
            except ray.exceptions.RayError:  # the master comes back, or the job is over
                time.sleep(AGAIN_S)
                continue
            if orders.leave:
                os._exit(0)
            if orders.abort:
                self._collective.abort(orders.number, "a member of the group is gone")
            self._orders = orders
            if orders.abort:  # what is begun just now must fail as well
                orders = Orders()
                time.sleep(AGAIN_S)
