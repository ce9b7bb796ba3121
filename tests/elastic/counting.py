"""A training that counts: its weights say how often each record was applied in each epoch."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from meeting_point import ThreadGroup

from elasticdl.data.ledger import Audit, Lease, Ledger
from elasticdl.data.source import Shard
from elasticdl.engine.callbacks import Callbacks
from elasticdl.engine.evaluator import Evaluation
from elasticdl.engine.lockstep import LockstepWork
from elasticdl.engine.shared_evaluator import SharedEvaluator
from elasticdl.engine.shared_step import APPLIED, Sum
from elasticdl.engine.step import Outcome
from elasticdl.engine.trainer import Plan, Trainer
from elasticdl.errors import DataError

__all__ = ["Data", "LedLife", "Life", "check_alike"]


@dataclass(frozen=True)
class Data:
    """What there is to train on, and what is wrong with it."""

    sizes: tuple[int, ...] = (23, 3, 14)
    records_per_lease: int = 5
    minibatch: int = 2
    num_epochs: int = 2
    left_out: frozenset[int] = frozenset()
    """Records that the dataset function filters, counted over all shards."""
    poisoned: Mapping[int, frozenset[str] | None] = field(default_factory=dict)
    """Records that cannot be read, by these members or (None) by all."""

    @property
    def num_records(self) -> int:
        return sum(self.sizes)

    @property
    def shards(self) -> list[Shard]:
        return [Shard(f"shard-{i}", size) for i, size in enumerate(self.sizes)]

    def ledger(self) -> Ledger:
        return Ledger(
            self.shards,
            records_per_lease=self.records_per_lease,
            num_epochs=self.num_epochs,
            seed=3,
            shuffle=True,
        )

    def minibatches(self, lease: Lease) -> list[list[int]]:
        """The records of each, by their place in the weights; those that are filtered are in none."""
        shard = int(lease.shard.removeprefix("shard-"))
        first = sum(self.sizes[:shard])
        records = [
            r for r in range(first + lease.start, first + lease.end) if r not in self.left_out
        ]
        places = [lease.epoch * self.num_records + record for record in records]
        return [places[i : i + self.minibatch] for i in range(0, len(places), self.minibatch)]

    def expected(self, audits: Mapping[int, Audit] | None = None) -> np.ndarray:
        """The weights of a training that applied everything once, but for what was given up."""
        counts = np.ones((self.num_epochs, self.num_records), np.int64)
        counts[:, sorted(self.left_out)] = 0
        for audit in (audits or {}).values():
            for lease in audit.bad:
                for minibatch in self.minibatches(lease)[lease.skip :]:
                    counts.reshape(-1)[minibatch] = 0
        return counts.reshape(-1)


class Weights:
    """Stands for the model."""

    metrics = None

    def __init__(self, data: Data) -> None:
        self.values = np.zeros(data.num_epochs * data.num_records, np.int64)

    def prepare_save(self) -> None: ...

    def save(self) -> dict[str, Any]:
        return {"model/values": self.values.copy()}

    def load(self, tensors: Mapping[str, Any]) -> None:
        self.values = tensors["model/values"].copy()


@dataclass
class _Minibatch:
    records: list[int] | None

    def has_value(self) -> bool:
        return self.records is not None

    def get_value(self) -> list[int]:
        assert self.records is not None
        return self.records


class _Reading:
    def __init__(self, minibatches: Iterator[list[int]], unreadable: set[int]) -> None:
        self._minibatches = minibatches
        self._unreadable = unreadable

    def get_next(self) -> _Minibatch:
        records = next(self._minibatches, None)
        if records is not None and self._unreadable & set(records):
            raise DataError(f"Cannot read {records}.")
        return _Minibatch(records)


class Pipeline:
    """`Leases` over records that are numbers."""

    is_replayed = False
    element_spec = None

    def __init__(self, data: Data, name: str) -> None:
        self._data = data
        poisoned = {r for r, who in data.poisoned.items() if who is None or name in who}
        self._unreadable = {
            epoch * data.num_records + record
            for epoch in range(data.num_epochs)
            for record in poisoned
        }
        self._open: Lease | None = None

    def open(self, lease: Lease) -> Any:
        self._open = lease
        return _Reading(iter(self._data.minibatches(lease)[lease.skip :]), self._unreadable)

    def begin(self, lease: Lease) -> tuple[Any, Any]:
        iterator = self.open(lease)
        return iterator, iterator.get_next()

    def finish(self, lease: Lease) -> None:
        assert self._open == lease, "finished what is not open"
        self._open = None

    def close(self) -> None:
        self._open = None

    def prepare(self, lease: Lease | None) -> None: ...

    def elements(self, lease: Lease) -> Iterator[Any]:
        raise NotImplementedError

    def find_fault(self, lease: Lease) -> int | None:
        raise NotImplementedError

    def reraise(self) -> None: ...


class Step:
    """`SharedStep` for weights that count."""

    def __init__(self, weights: Weights, group: ThreadGroup, ledger: Ledger, shared: bool) -> None:
        self._weights = weights
        self._group = group
        self._ledger = ledger
        self._shared = shared

        self.taken: list[Sum] = []
        self.taken_at = 0.0

    def run(self, minibatches: Sequence[Any], slot: int, version: int) -> None:
        self.taken = []
        for turn, minibatch in enumerate(minibatches or [None]):
            is_last = turn + 1 >= len(minibatches)
            ends = self._take_turn(minibatch, slot if is_last else APPLIED, is_last, version + turn)
            self.taken_at = time.monotonic()
            if ends:
                break

    def _take_turn(self, minibatch: Any, slot: int, is_last: bool, version: int) -> bool:
        group = self._group
        records = minibatch.get_value() if minibatch is not None else []
        if self._shared:
            rank, size = group.rank, group.size
            records = records[len(records) * rank // size : len(records) * (rank + 1) // size]
        given = {
            "records": records,
            "slot": slot,
            "pause": group.wants_pause,
            "stop": group.wants_stop,
            "ends": is_last,
            "same": (version, self._weights.values.tobytes()),
        }
        if not self.taken:  # the ledger is moved after the call
            given["ledger"] = _text(self._ledger)
        with group.guarded():
            all_given = group.reduce(given, None)
        summed = [record for one in all_given for record in one["records"]]
        said = Sum(
            loss_sum=float(sum(summed)),
            examples=len(summed),
            pause=any(one["pause"] for one in all_given),
            stop=any(one["stop"] for one in all_given),
            slots=tuple(one["slot"] for one in all_given),
            shares=tuple(len(one["records"]) for one in all_given),
        )
        if said.counts(shared=self._shared):
            np.add.at(self._weights.values, summed, 1)
        self.taken.append(said)
        is_plain = all(one == APPLIED for one in said.slots) and not (said.pause or said.stop)
        return not is_plain or any(one["ends"] for one in all_given)


class Alone:
    """`TrainStep` for weights that count; its process can be lost as well."""

    def __init__(self, weights: Weights, group: ThreadGroup) -> None:
        self._weights = weights
        self._group = group

    def run(self, iterator: Any, minibatch: Any, max_steps: int) -> tuple[Outcome, Any]:
        steps = examples = 0
        self._group.reduce({"same": None}, None)
        while steps < max_steps and minibatch.has_value():
            np.add.at(self._weights.values, minibatch.get_value(), 1)
            steps, examples = steps + 1, examples + len(minibatch.get_value())
            minibatch = iterator.get_next()
        return Outcome(steps, examples, 0.0, 0.0, True, not minibatch.has_value()), minibatch


def _text(ledger: Ledger) -> str:
    return json.dumps(ledger.replica())


def check_alike(given: list[Any]) -> None:
    """In every turn: the same version and weights everywhere; the same ledger where all have just looked at it."""
    if given and isinstance(given[0], dict) and "same" in given[0]:
        assert all(one["same"] == given[0]["same"] for one in given), "replicas differ"
        ledgers = [one.get("ledger") for one in given]
        assert all(ledger == ledgers[0] for ledger in ledgers), "ledgers differ"


class Life:
    """One member from its start to the end of the training, as `Trainer` would lead it."""

    def __init__(self, data: Data, group: ThreadGroup, seed: int, **options: Any) -> None:
        self.name = group.name
        self.group = group
        self.weights = Weights(data)
        self.ledger = data.ledger()
        self.steps = self.examples = 0
        self.shares: Counter[str] = Counter()
        self.audits: dict[int, Audit] = {}
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._chance = random.Random(f"{seed}/{group.name}")
        training: Any = self.weights
        step: Any = Step(self.weights, group, self.ledger, options["shared"])
        self.work = LockstepWork(
            training,
            Pipeline(data, group.name),
            self.ledger,
            group,
            tell=lambda event, **fields: self.told.append((event, fields)),
            step=step,
            **options,
        )
        alone: Any = Alone(self.weights, group)
        self.work._alone = alone
        self.work.whole_state = self._whole_state

    def _whole_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        audits = dict(self.audits)
        return self.weights.save(), {
            "counts": (self.steps, self.examples, self.shares),
            "audits": audits,
        }

    def run(self) -> None:
        change = self.group.join(lambda: self.steps, self.work.give)
        if change.state is not None:
            assert change.state.rest is not None
            self.weights.load(change.state.tensors)
            self.steps, self.examples, shares = change.state.rest["counts"]
            self.shares = Counter(shares)
            self.audits = dict(change.state.rest["audits"])
        self.work.begin(change)
        while not self.ledger.is_done and not self.work.is_stopped:
            self._run_epoch()
        self.work.together(None)
        self.group.point.end()

    def _run_epoch(self) -> None:
        while not self.ledger.epoch_is_done:
            outcome = self.work.run(self._chance.randint(1, 4))
            self.steps += outcome.steps
            self.examples += outcome.examples
            self.shares.update(self.work.take_shares())
            if self.work.is_stopped:
                return
        self.work.settle()
        audit = self.ledger.close_epoch()
        self.audits[audit.epoch] = audit
        self.work.prepare()


class Validation:
    """`Evaluator` for weights that count: a part says which lease it is of, and what the weights were."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def leases(self) -> list[Lease]:
        return [Lease(0, number, "validation", number, number + 1) for number in range(5)]

    def part(self, leases: list[Lease]) -> tuple[int, int]:
        (lease,) = leases
        return lease.number, int(self._weights.values.sum())

    def merge(self, parts: list[tuple[int, int]]) -> Evaluation:
        assert sorted(number for number, _ in parts) == list(range(5)), "not every part once"
        assert len({total for _, total in parts}) == 1, "parts of different weights"
        return Evaluation({"applied": float(parts[0][1])}, len(parts))


class LedLife(Life):
    """The same with the real `Trainer`, which evaluates and saves on its way."""

    def __init__(
        self, data: Data, group: ThreadGroup, seed: int, plan: Plan, **options: Any
    ) -> None:
        super().__init__(data, group, seed, **options)
        self.saved: list[int] = []
        training: Any = self.weights
        evaluator: Any = Validation(self.weights)
        model: Any = SimpleNamespace(stop_training=False)
        self.trainer = Trainer(
            training,
            self.work,
            evaluator=SharedEvaluator(evaluator, group, self.work),
            callbacks=Callbacks([], model),
            checkpointer=self,
            plan=plan,
            emit=self._note,
            interrupted=lambda: self.work.is_stopped,
        )
        self.work.whole_state = self.trainer.snapshot

    # --- what a checkpointer does ---

    rests = False

    @property
    def is_mine(self) -> bool:
        return self.group.rank == 0

    def save(self, step: int, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        self.saved.append(step)

    def _note(self, event: str, **fields: Any) -> None:
        if event == "epoch_audit":
            self.examples += fields["examples"]

    def run(self) -> None:
        trainer = self.trainer
        change = self.group.join(lambda: trainer.progress.step, self.work.give)
        if change.state is not None:
            assert change.state.rest is not None
            trainer.restore(change.state.tensors, change.state.rest)
        self.work.begin(change)
        trainer.train()
        self.work.together(None)
        self.steps = trainer.progress.step
        self.group.point.end()
