"""Where the loop gets its steps from: leases of a ledger, their minibatches, and the graph that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.pipeline import Leases
from elasticdl.engine.explain import reading
from elasticdl.engine.step import Outcome, TrainStep

if TYPE_CHECKING:
    from elasticdl.engine.state import TrainingModel

__all__ = ["LeaseWork", "Work", "place_of"]


class Work(Protocol):
    """The steps of a training, done by this process alone or in lock-step with others."""

    is_replayed: bool
    """Whether a run that goes on reads all of its data again, so that random numbers are drawn as before."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def place(self) -> str:
        """Where the last steps' records are, in words."""

    def run(self, max_steps: int) -> Outcome:
        """Take up to so many steps; returns before that at the end of a lease or of the epoch."""

    def prepare(self) -> None:
        """Something else than steps comes next: open meanwhile what they will read."""

    def settle(self) -> None:
        """Return when every process that trains together has taken the same steps."""

    def agree(self, value: bool) -> bool:
        """What one process decides for all: for what depends on a clock."""

    def take_shares(self) -> dict[str, int]:
        """The examples of each worker since the last call; none where this process is alone."""


class LeaseWork:
    """One lease after the other, by this process alone."""

    def __init__(self, training: TrainingModel, pipeline: Leases, ledger: Ledger) -> None:
        self.ledger = ledger
        self.is_replayed = pipeline.is_replayed
        self._pipeline = pipeline
        self._step = TrainStep(training)
        self._lease: Lease | None = None
        self._iterator: Any = None
        self._minibatch: Any = None
        self._done = 0
        self.place = ""

    def run(self, max_steps: int) -> Outcome:
        lease = self._lease or self._begin()
        with reading(self._pipeline, lease):
            outcome, self._minibatch = self._step.run(self._iterator, self._minibatch, max_steps)
        self._done += outcome.steps
        if outcome.is_exhausted:
            self._pipeline.finish(lease)
            self.ledger.complete(lease)
            self._lease = None
        else:
            self.ledger.progress(lease, self._done)
        return outcome

    def _begin(self) -> Lease:
        lease = self.ledger.lease()
        assert lease is not None, "asked for steps when the epoch is done"
        with reading(self._pipeline, lease):
            self._iterator, self._minibatch = self._pipeline.begin(lease)
            self.prepare()
        self._lease, self._done = lease, lease.skip
        self.place = place_of(lease, self._pipeline)
        return lease

    def prepare(self) -> None:
        self._pipeline.prepare(self.ledger.peek())

    def settle(self) -> None:
        pass

    def agree(self, value: bool) -> bool:
        return value

    def take_shares(self) -> dict[str, int]:
        return {}


def place_of(lease: Lease, pipeline: Leases) -> str:
    """Where the records of a lease are, in words."""
    if pipeline.is_replayed:  # the user's own minibatches
        return lease.shard
    return f"the records [{lease.start}, {lease.end}) of {lease.shard}"
