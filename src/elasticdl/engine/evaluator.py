"""Evaluation: every record of the validation data once, on one version's weights.

In one process by `evaluate`; or in parts, by several, which `merge` makes the same numbers of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.pipeline import Leases
from elasticdl.engine.explain import reading
from elasticdl.engine.inputs import Minibatch, num_examples, split_minibatch
from elasticdl.engine.metric_states import is_additive, set_sums, take_states
from elasticdl.engine.metrics import BlockMetrics, KerasMetrics
from elasticdl.engine.parts import LeaseSum, Part, check_whole, of_any_size, plain, tensors_of
from elasticdl.errors import DataError

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

    from elasticdl.engine.state import TrainingModel

__all__ = ["Evaluation", "Evaluator"]

Each = Callable[[Any, Any], None]
"""Gets a minibatch, and the model's outputs for it."""


@dataclass(frozen=True)
class Evaluation:
    """The outcome: the loss among the metrics, and over how many examples."""

    metrics: dict[str, float]
    examples: int


class Evaluator:
    """Evaluates a model on a pipeline, as often as it is asked to.

    Args:
      training: the model.
      pipeline: the validation data.
      make_ledger: a fresh ledger over the validation data, one epoch.
      with_ids: the third part of a minibatch is what its examples are called, not their weights.
    """

    def __init__(
        self,
        training: TrainingModel,
        pipeline: Leases,
        make_ledger: Callable[[], Ledger],
        *,
        with_ids: bool = False,
    ) -> None:
        import tensorflow as tf

        self._training = training
        self._pipeline = pipeline
        self._make_ledger = make_ledger
        self._with_ids = with_ids
        self._keras = KerasMetrics(training.spec)
        self._blocks = BlockMetrics(training.spec)
        self._step = tf.function(self._one_step, reduce_retracing=True, autograph=False)
        self._loop = tf.function(self._all_steps, reduce_retracing=True, autograph=False)

    def names(self, element: Any) -> list[str]:
        """The metrics that an evaluation gives, found out on one minibatch."""
        batch = self._split(element)
        outputs = self._training.loss(batch, training=False)[1]
        if self._training.metrics is not None:
            return ["loss", *self._training.metrics.names]
        return ["loss", *self._keras.names, *self._blocks.names(batch.labels, outputs)]

    def leases(self) -> list[Lease]:
        """All leases of one evaluation, in order."""
        ledger = self._make_ledger()
        return list(iter(ledger.lease, None))

    def evaluate(
        self,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
        interrupted: Callable[[], bool] = lambda: False,
        on_batch: Each | None = None,
    ) -> Evaluation | None:
        """Run over all validation data; None when it was interrupted.

        `on_progress` gets (records done, records in all), `on_batch` each minibatch and the model's outputs for it.
        The metrics that a model was compiled with are reset: note what the training's were before.
        """
        self._reset()
        ledger = self._make_ledger()
        total = ledger.records_per_epoch
        each = _all_of(self._collect_block if self._blocks.is_needed else None, on_batch)
        sums: list[LeaseSum] = []
        while lease := ledger.lease():
            if interrupted():
                return None
            sums.append(self._run(lease, ledger.peek(), each))
            ledger.complete(lease)
            on_progress(ledger.records_applied, total)
        ledger.close_epoch()
        return self._evaluation(sums, total)

    def part(
        self,
        leases: Sequence[Lease],
        on_lease: Callable[[Lease], None] = lambda lease: None,
        *,
        following: Lease | None = None,
    ) -> Part:
        """What these leases contribute to an evaluation, for `merge`, here or in another process.

        `on_lease` is called when one is done; what it raises ends the part. The training's metrics, of a model that was
        compiled with some, are afterwards what they were before: replicas that evaluate different leases stay alike.
        `following` is the lease of the next part, to be read ahead.
        """
        kept: dict[int, list[Any]] = {}
        sums: list[LeaseSum] = []
        with self._metrics_put_back():
            self._reset()
            for lease, next_one in zip(leases, [*leases[1:], following], strict=False):
                each = partial(self._keep, kept.setdefault(lease.number, []))
                sums.append(self._run(lease, next_one, each if self._keeps else None))
                on_lease(lease)
            return Part(tuple(sums), take_states(self._metrics), kept if self._keeps else {})

    def merge(self, parts: Sequence[Part]) -> Evaluation:
        """What `evaluate` gives, of parts that together have each of `leases()` once.

        The order of the parts makes no difference. Raises `AuditFailure` for a lease that is missing or there twice.
        """
        leases = self.leases()
        check_whole(parts, leases)
        parts = sorted(parts, key=lambda part: min((s.number for s in part.sums), default=-1))
        sums = sorted((s for part in parts for s in part.sums), key=lambda s: s.number)
        minibatches = {number: kept for part in parts for number, kept in part.minibatches.items()}
        with self._metrics_put_back():
            self._make_variables(parts, leases)
            self._reset()
            self._update_again(
                [one for number in sorted(minibatches) for one in minibatches[number]]
            )
            set_sums(self._metrics, [part.states for part in parts])
            return self._evaluation(sums, sum(lease.num_records for lease in leases))

    def _evaluation(self, sums: Sequence[LeaseSum], records: int) -> Evaluation:
        """The outcome of leases in their order; the metrics have seen all of them."""
        examples = sum(lease.examples for lease in sums)
        if not examples:
            raise DataError(
                f"The dataset function left none of the {records} validation records. "
                "Look at what it filters out when the mode is evaluation."
            )
        loss = sum((lease.loss_sum for lease in sums), 0.0) / examples
        return Evaluation(metrics={"loss": loss} | self._result(), examples=examples)

    def _reset(self) -> None:
        self._keras.reset()
        self._blocks.reset()
        if self._training.metrics is not None:
            self._training.metrics.reset()

    def _result(self) -> dict[str, float]:
        if self._training.metrics is not None:
            return self._training.metrics.result()
        return self._keras.result() | self._blocks.result()

    @property
    def _metrics(self) -> list[keras.metrics.Metric]:
        """The Keras metrics whose results count."""
        return (self._training.metrics or self._keras).metrics

    @property
    def _keeps(self) -> bool:
        """Whether a part must have minibatches: some metric cannot be summed."""
        return self._blocks.is_needed or not all(map(is_additive, self._metrics))

    def _keep(self, kept: list[Any], element: Any, outputs: Any) -> None:
        batch = self._split(element)
        compiled = self._training.metrics
        features = batch.features if compiled is not None and compiled.reads_features else None
        kept.append(plain((features, batch.labels, batch.weights, outputs)))

    def _collect_block(self, element: Any, outputs: Any) -> None:
        self._blocks.update(self._split(element).labels, outputs)

    def _update_again(self, minibatches: Sequence[Any]) -> None:
        """The metrics that cannot be summed see what all parts saw, in the same order as here alone."""
        import tensorflow as tf

        update: Any = self._update
        if minibatches and not tf.config.functions_run_eagerly():
            update = tf.function(self._update, reduce_retracing=True, autograph=False)
            update.get_concrete_function(*of_any_size(tensors_of(minibatches[0])))
        for minibatch in minibatches:
            features, labels, weights, outputs = tensors_of(minibatch)
            update(features, labels, weights, outputs)
            if self._blocks.is_needed:
                self._blocks.update(labels, outputs)

    def _make_variables(self, parts: Sequence[Part], leases: Sequence[Lease]) -> None:
        """Some metrics have their variables from the first minibatch on: there may have been none here."""
        made = [len(metric.variables) for metric in self._metrics]
        if all(len(s) <= n for part in parts for s, n in zip(part.states, made, strict=True)):
            return
        for lease in leases:
            with reading(self._pipeline, lease):
                for element in self._pipeline.elements(lease):
                    self._step(element)
                    return

    @contextmanager
    def _metrics_put_back(self) -> Iterator[None]:
        """The metrics that a model was compiled with serve the training too."""
        compiled = self._training.metrics
        before = [] if compiled is None else [(v, v.numpy()) for v in compiled.variables]
        try:
            yield
        finally:
            for variable, value in before:
                variable.assign(value)

    def _split(self, element: Any) -> Minibatch:
        return split_minibatch(element[:2] if self._with_ids else element)

    def _run(self, lease: Lease, following: Lease | None, each: Each | None) -> LeaseSum:
        """Evaluate a lease. What is done with each minibatch is done in Python, which takes longer."""
        import tensorflow as tf

        by_hand = each is not None or tf.config.functions_run_eagerly()
        with reading(self._pipeline, lease):
            if by_hand:
                return LeaseSum(lease.number, *self._one_by_one(lease, each))
            iterator = self._pipeline.open(lease)
            self._pipeline.prepare(following)
            totals = self._loop(iterator)
            self._pipeline.finish(lease)
            return LeaseSum(lease.number, int(totals[0]), float(totals[1]))

    def _one_by_one(self, lease: Lease, each: Each | None) -> tuple[int, float]:
        import tensorflow as tf

        examples, loss_sum = 0, 0.0
        if not tf.config.functions_run_eagerly() and self._pipeline.element_spec is not None:
            # For batches of any size, as in a loop: Keras weights some means by a size that it knows beforehand.
            self._step.get_concrete_function(self._pipeline.element_spec)
        for element in self._pipeline.elements(lease):
            loss, count, outputs = self._step(element)
            if each is not None:
                each(element, outputs)
            examples += int(count)
            loss_sum += float(loss) * int(count)
        return examples, loss_sum

    def _all_steps(self, iterator: Any) -> tuple[tf.Tensor, tf.Tensor]:
        import tensorflow as tf

        def more(examples: Any, loss_sum: Any, following: Any) -> Any:
            return following.has_value()

        def body(examples: Any, loss_sum: Any, following: Any) -> Any:
            loss, count, _ = self._step(following.get_value())
            weight = tf.cast(count, tf.float64)
            return (
                examples + tf.cast(count, tf.int64),
                loss_sum + tf.cast(loss, tf.float64) * weight,
                iterator.get_next(),
            )

        start = [
            tf.constant(0, tf.int64),
            tf.constant(0.0, tf.float64),
            iterator.get_next(),
        ]
        examples, loss_sum, _ = tf.while_loop(more, body, start)
        return examples, loss_sum

    def _one_step(self, element: Any) -> tuple[tf.Tensor, tf.Tensor, Any]:
        batch = self._split(element)
        loss, outputs = self._training.loss(batch, training=False)
        self._update(*batch, outputs)
        return loss, num_examples(batch.features), outputs

    def _update(self, features: Any, labels: Any, weights: Any, outputs: Any) -> None:
        if self._training.metrics is not None:
            self._training.metrics.update(Minibatch((features, labels, weights)), outputs)
        self._keras.update(labels, outputs)


def _all_of(*calls: Each | None) -> Each | None:
    """One that does all of it; None when there is nothing to do."""
    given = [call for call in calls if call is not None]

    def each(element: Any, outputs: Any) -> None:
        for call in given:
            call(element, outputs)

    return each if given else None
