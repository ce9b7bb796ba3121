"""Evaluation: every record of the validation data once, on one version's weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.pipeline import Leases
from elasticdl.engine.explain import reading
from elasticdl.engine.inputs import Minibatch, num_examples, split_minibatch
from elasticdl.engine.metrics import BlockMetrics, KerasMetrics
from elasticdl.errors import DataError

if TYPE_CHECKING:
    import tensorflow as tf

    from elasticdl.engine.state import TrainingModel

__all__ = ["Evaluation", "Evaluator"]


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

    def evaluate(
        self,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
        interrupted: Callable[[], bool] = lambda: False,
        on_batch: Callable[[Any, Any], None] | None = None,
    ) -> Evaluation | None:
        """Run over all validation data; None when it was interrupted.

        `on_progress` gets (records done, records in all), `on_batch` each minibatch and the model's outputs for it.
        """
        self._reset()
        ledger = self._make_ledger()
        total = ledger.records_per_epoch
        examples, loss_sum = 0, 0.0
        while lease := ledger.lease():
            if interrupted():
                return None
            with reading(self._pipeline, lease):
                count, loss = self._run(lease, ledger.peek(), on_batch)
            examples += count
            loss_sum += loss
            ledger.complete(lease)
            on_progress(ledger.records_applied, total)
        ledger.close_epoch()
        if not examples:
            raise DataError(
                f"The dataset function left none of the {total} validation records. "
                "Look at what it filters out when the mode is evaluation."
            )
        return Evaluation(metrics={"loss": loss_sum / examples} | self._result(), examples=examples)

    def _reset(self) -> None:
        self._keras.reset()
        self._blocks.reset()
        if self._training.metrics is not None:
            self._training.metrics.reset()

    def _result(self) -> dict[str, float]:
        if self._training.metrics is not None:
            return self._training.metrics.result()
        return self._keras.result() | self._blocks.result()

    def _split(self, element: Any) -> Minibatch:
        return split_minibatch(element[:2] if self._with_ids else element)

    def _run(
        self, lease: Lease, next_lease: Lease | None, on_batch: Callable[[Any, Any], None] | None
    ) -> tuple[int, float]:
        """The examples of a lease and the sum of their losses."""
        import tensorflow as tf

        by_hand = self._blocks.is_needed or on_batch is not None
        if not by_hand and not tf.config.functions_run_eagerly():
            iterator = self._pipeline.open(lease)
            self._pipeline.prepare(next_lease)
            totals = self._loop(iterator)
            self._pipeline.finish(lease)
            return int(totals[0]), float(totals[1])
        examples, loss_sum = 0, 0.0
        if not tf.config.functions_run_eagerly() and self._pipeline.element_spec is not None:
            # For batches of any size, as in a loop: Keras weights some means by a size that it knows beforehand.
            self._step.get_concrete_function(self._pipeline.element_spec)
        for element in self._pipeline.elements(lease):
            loss, count, outputs = self._step(element)
            if self._blocks.is_needed:
                self._blocks.update(self._split(element).labels, outputs)
            if on_batch is not None:
                on_batch(element, outputs)
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
        if self._training.metrics is not None:
            self._training.metrics.update(batch, outputs)
        self._keras.update(batch.labels, outputs)
        return loss, num_examples(batch.features), outputs
