"""Steps in lock-step with other processes, which may be lost and may come at any time.

Every member keeps the same state: the model, the progress, and a replica of the ledger. In each turn a member
computes on its own minibatch and says in its slot what became of its lease; the sum of the turn reaches all members
or, when one is lost in the middle of it, perhaps only some. From what was said everyone moves its replica of the
ledger in the same way, so the number of the turn says which minibatches are in the model, those of a lost
member too. Who missed the last turn takes over the result of it; what a lost member held and did not apply is
handed out again.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.minibatches import prefetch_depth
from elasticdl.data.pipeline import Leases
from elasticdl.engine.explain import reading
from elasticdl.engine.group import Change, Group, GroupBroken, State
from elasticdl.engine.shared_step import APPLIED, EMPTY, FAILED, IDLE, LAST, SharedStep, Sum
from elasticdl.engine.step import Outcome, TrainStep
from elasticdl.engine.work import place_of
from elasticdl.errors import DataError

if TYPE_CHECKING:
    from elasticdl.engine.state import TrainingModel

__all__ = ["EchoedFailure", "LockstepWork"]

TRIES = 3
"""On so many different members reading a task may fail before it is the task's fault."""

EVERYBODY = "everybody"
"""Who holds a lease on which all members work together."""


class EchoedFailure(DataError):
    """What another member raises with more to say."""


@dataclass
class _Hand:
    """The lease that is being worked on, and what was read of it and is not applied yet."""

    lease: Lease
    iterator: Any = None
    ahead: list[Any] = field(default_factory=list)
    """Minibatches, and after them the end, if that was seen."""
    is_whole: bool = False
    """Whether what was read last is the end, and no minibatch."""
    failure: Exception | None = None

    @property
    def num_minibatches(self) -> int:
        return len(self.ahead) - self.is_whole

    def took(self, read: Any) -> None:
        self.ahead.append(read)
        self.is_whole = not bool(read.has_value())


class LockstepWork:
    """`Work` for one member of a group.

    Args:
      training: the model.
      pipeline: the minibatches: of a member's own lease, or of the lease of all.
      ledger: this member's replica.
      group: who trains together.
      shared: whether all members work on the same minibatches, each on its slice.
      max_bad_tasks: how many tasks may be left out since they cannot be read.
      tell: is told what the user should know, by one of the members.
      step: takes the steps; made for the model and the group if not given.
    """

    def __init__(
        self,
        training: TrainingModel,
        pipeline: Leases,
        ledger: Ledger,
        group: Group,
        *,
        shared: bool,
        max_bad_tasks: int = 0,
        tell: Callable[..., None] = lambda event, **fields: None,
        step: SharedStep | None = None,
    ) -> None:
        self.ledger = ledger
        self.is_replayed = pipeline.is_replayed
        self.is_stopped = False
        """Whether the members agreed to stop."""
        self.whole_state: Callable[[], tuple[dict[str, Any], dict[str, Any]]] = lambda: ({}, {})
        """Makes what a newcomer takes over; set by who has the trainer."""
        self.place = "the first records"
        self._training = training
        self._pipeline = pipeline
        self._group = group
        self._shared = shared
        self._max_bad = max_bad_tasks
        self._tell = tell
        self._step = step or SharedStep(training, group, pipeline.element_spec, shared=shared)
        self._alone = TrainStep(training)
        self._most_ahead = prefetch_depth(pipeline.element_spec)
        self._hand: _Hand | None = None
        self._names: tuple[str, ...] = ()
        self._shares: dict[str, int] = {}
        self._turn = 0
        self._last: Sum | None = None
        self._broken = self._pausing = False
        self._bad = 0
        self._active_at: float | None = None
        """When the last turn ended."""
        self._new: dict[str, Any] | None = None
        """What is to be told of a new membership with its first turn, by the one whose state counted."""
        self._tells = False

    def warm_up(self, element: Any) -> None:
        """Before this process becomes a member: what takes its time at first does so now."""
        self._step.warm_up(element)
        first = self.ledger.peek()
        if self.is_replayed or first is None:
            return
        nothing = replace(first, number=-1, end=first.start)
        iterator, minibatch = self._pipeline.begin(nothing)
        self._alone.run(iterator, minibatch, 0)
        self._pipeline.finish(nothing)

    def begin(self, change: Change) -> None:
        """This process has become a member and has the group's state."""
        self._turn = change.version
        self._active_at = time.monotonic()
        if change.state is not None and change.state.rest is not None:
            self._last = change.state.last
            self._bad = change.state.rest["bad"]
            self.ledger.take(change.state.rest["replica"])
        self._enter(change)

    def run(self, max_steps: int) -> Outcome:
        if self._broken or self._pausing:
            missed = self._regroup(may_admit=True)
            if missed is not None:
                return _outcome([missed])
        self._assign()
        if self._is_alone:
            return self._run_alone(max_steps)
        said: list[Sum] = []
        while len(said) < max_steps and not self.ledger.epoch_is_done:
            turns = self._take_turns(max_steps - len(said))
            said += [turn for turn in turns if self._counts(turn)]
            last = turns[-1] if turns else None
            if last is not None:
                self.is_stopped |= last.stop
                self._pausing |= last.pause
            if self._broken or last is None or last.stop or last.pause or not last.is_finite:
                break
        return _outcome(said)

    @property
    def _is_alone(self) -> bool:
        """Whether one graph call may run many steps: nobody has to hear of each."""
        hand = self._hand
        waits = hand is not None and (len(hand.ahead) > 1 or hand.is_whole)
        return self._group.size == 1 and not self._max_bad and not waits

    def _run_alone(self, max_steps: int) -> Outcome:
        hand = self._opened()
        assert hand is not None, "asked for steps when the epoch is done"
        if hand.failure is not None:
            raise hand.failure
        with reading(self._pipeline, hand.lease):
            outcome, following = self._alone.run(hand.iterator, hand.ahead[0], max_steps)
        hand.ahead = [following]
        held = self._holds(self._names[0])
        assert held is not None
        self._turn += outcome.steps
        self._note_shares((outcome.examples,))
        self._went_on(time.monotonic())
        self.ledger.progress(held, held.skip + outcome.steps)
        if outcome.is_exhausted:
            self._close(LAST)
            self.ledger.complete(held)
        self._pausing |= self._group.wants_pause
        self.is_stopped |= self._group.wants_stop
        return outcome

    def _take_turns(self, most: int) -> list[Sum]:
        """Some turns in one call; of a new group one, since it is told how long it took to come to that."""
        slot, count = self._look(1 if self._new is not None else most)
        minibatches = self._hand.ahead[:count] if self._hand else []
        try:
            self._step.run(minibatches, slot, self._turn)
        except GroupBroken:
            self._broken = True
        turns = self._step.taken
        for said in turns:
            self._end_turn(said)
        if turns:
            self._went_on(self._step.taken_at)
        return turns

    def _counts(self, said: Sum) -> bool:
        return said.counts(shared=self._shared)

    def _end_turn(self, said: Sum) -> None:
        """What was said is done: move the ledger, and what is in hand."""
        self._turn += 1
        self._last = said
        if self._counts(said):
            self._note_shares(said.shares)
        mine = said.slots[self._rank]
        if self._shared and FAILED in said.slots:
            mine = FAILED if self._hand else IDLE  # what one cannot read is left by all
        failed = self._hand.failure if self._hand else None
        if mine == APPLIED and self._hand is not None:
            self._hand.ahead.pop(0)
        elif mine != IDLE:
            self._close(mine)
        self._move_ledger(said.slots, failed)
        self._assign()

    def _note_shares(self, examples: tuple[int, ...]) -> None:
        for name, count in zip(self._names, examples, strict=False):
            self._shares[name] = self._shares.get(name, 0) + count

    def take_shares(self) -> dict[str, int]:
        shares, self._shares = self._shares, {}
        return shares

    @property
    def _rank(self) -> int:
        return self._names.index(self._group.name)

    # --- the ledger ---

    def _move_ledger(self, slots: tuple[int, ...], failed: Exception | None) -> None:
        if self._shared:
            slots = (FAILED if FAILED in slots else slots[0],)
        for name, slot in zip(self._names, slots, strict=False):
            lease = self._holds(name)
            if lease is None:
                continue
            if slot == APPLIED:
                self.ledger.progress(lease, lease.skip + 1)
            elif slot in (LAST, EMPTY):
                self.ledger.complete(lease)
            elif slot == FAILED:
                self._fail(
                    lease, name, failed if name == self._group.name or self._shared else None
                )

    def _fail(self, lease: Lease, name: str, failed: Exception | None) -> None:
        holder = EVERYBODY if self._shared else name
        tries = self.ledger.fail(lease, holder)
        if tries < (1 if self._shared else min(TRIES, len(self._names))):
            return
        self._leave_out(lease, tries, failed)

    def _leave_out(self, lease: Lease, tries: int, failed: Exception | None) -> None:
        """What cannot be read by anybody is given up, if so much may be."""
        where = place_of(lease, self._pipeline)
        if self._bad >= self._max_bad:
            raise (EchoedFailure if failed is None else DataError)(
                f"{'' if failed is None else _told(failed)}\nReading {where} failed on every one of {tries} tries, so "
                f"the training stops. Mend the data{self._advice}."
            )
        self._bad += 1
        self.ledger.give_up(lease)
        if self._group.rank:
            return
        self._tell("bad_task", shard=lease.shard, start=lease.start, end=lease.end, tries=tries)
        self._tell("warning", message=f"Left out, since reading failed: {where}.")

    @property
    def _advice(self) -> str:
        if self.is_replayed:  # the user's own minibatches, of which none can be left out
            return ""
        return f", or leave such tasks out with --max_bad_tasks={self._max_bad + 1}"

    def _holds(self, name: str) -> Lease | None:
        held = self.ledger.held_by(EVERYBODY if self._shared else name)
        return held[0] if held else None

    def _assign(self) -> None:
        """Leases for who has none; and one more each, to be read ahead, while there are enough for all."""
        holders = (EVERYBODY,) if self._shared else self._names
        for holder in holders:
            if not self.ledger.held_by(holder):
                self.ledger.lease(holder)
        while not self.ledger.holders and (lease := self.ledger.peek("")):
            # It failed on everybody who is here.
            self._leave_out(lease, len(self._names), None)
        for holder in holders:
            if len(self.ledger.held_by(holder)) == 1 and self.ledger.has_waiting(len(holders)):
                self.ledger.lease(holder)

    # --- what is in hand ---

    def _opened(self) -> _Hand | None:
        """The lease to work on, opened."""
        lease = self._holds(self._group.name)
        if lease is None:
            return None
        if self._hand is None:
            self._hand = hand = _Hand(lease)
            self.place = place_of(lease, self._pipeline)
            try:
                with reading(self._pipeline, lease):
                    hand.iterator, first = self._pipeline.begin(lease)
                    hand.took(first)
            except Exception as error:
                hand.failure = error
            self.prepare()
        return self._hand

    def _look(self, most: int) -> tuple[int, int]:
        """With how many minibatches to take turns, and what to say with the last: needs the one after them."""
        hand = self._opened()
        if hand is None:
            return IDLE, 0
        most = min(most, self._most_ahead)
        while not hand.is_whole and hand.failure is None and len(hand.ahead) <= most:
            try:
                with reading(self._pipeline, hand.lease):
                    hand.took(hand.iterator.get_next())
            except Exception as error:
                hand.failure = error
        count = min(hand.num_minibatches, most)
        if count == 0:
            return (EMPTY if hand.is_whole else FAILED), 0
        return (LAST if hand.is_whole and count == hand.num_minibatches else APPLIED), count

    def _close(self, slot: int) -> None:
        assert self._hand is not None
        if slot == FAILED:
            self._pipeline.close()
        else:
            self._pipeline.finish(self._hand.lease)
        self._hand = None

    def prepare(self) -> None:
        self._assign()
        held = self.ledger.held_by(EVERYBODY if self._shared else self._group.name)
        ahead = held[1:] if self._hand is not None else held[:1]
        if ahead and (self._hand is None or self._hand.failure is None):
            self._pipeline.prepare(ahead[0])

    # --- the group ---

    def settle(self) -> None:
        self.together(None)

    def agree(self, value: bool) -> bool:
        return bool(self.together(value)[0])

    def together(self, payload: Any) -> list[Any]:
        """What every member gives, by rank, whoever is lost meanwhile."""
        while True:
            if self._broken:
                self.regroup()
            try:
                return self._group.gather(payload)
            except GroupBroken:
                self._broken = True

    def regroup(self) -> None:
        """Something else than a turn was broken: go on with who is left."""
        missed = self._regroup(may_admit=False)
        assert missed is None, "settled before its last turn was taken"

    def _regroup(self, *, may_admit: bool) -> Sum | None:
        """Wait for the new membership; returns what was said in a turn that this member missed."""
        broken = self._broken and may_admit
        if not may_admit:
            self._active_at = time.monotonic()
        change = self._group.regroup(self._turn, self.give, may_admit=may_admit)
        self._broken = self._pausing = False
        missed = None
        redone = int(broken and change.state is None)
        if change.state is not None:
            self._training.load(change.state.tensors)
            missed = change.state.last
            self.is_stopped |= missed.stop
            self._end_turn(missed)
            self._went_on(time.monotonic())
        self._enter(change)
        assert self._new is not None
        self._new["redone"] = redone
        return missed if missed is not None and self._counts(missed) else None

    def _went_on(self, at: float) -> None:
        if self._new is not None and self._active_at is not None and self._tells:
            self._tell("group_formed", **self._new, stall_s=round(at - self._active_at, 3))
        self._active_at, self._new = at, None

    def _enter(self, change: Change) -> None:
        self._names = change.names
        # Who was there before knows how long it took.
        self._tells = change.is_truth
        self._new = {"members": list(change.names), "step": change.version, "redone": 0}
        for name in sorted(self.ledger.holders - {*change.names, EVERYBODY}):
            self.ledger.release(name)
        self._assign()

    def give(self, whole: bool) -> State:
        """What others take over: all of it, or only what one needs that missed the last turn."""
        if not whole:
            return State(self._training.save(), self._last)
        tensors, rest = self.whole_state()
        return State(
            tensors, self._last, {**rest, "replica": self.ledger.replica(), "bad": self._bad}
        )


def _outcome(said: list[Sum]) -> Outcome:
    last = said[-1] if said else None
    return Outcome(
        steps=len(said),
        examples=sum(turn.examples for turn in said),
        loss_sum=sum(turn.loss_sum for turn in said),
        last_loss=last.loss if last else 0.0,
        is_finite=last.is_finite if last else True,
        is_exhausted=False,
    )


def _told(error: Exception) -> str:
    if isinstance(error, DataError):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()
