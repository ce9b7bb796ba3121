"""The graph that trains: one call runs many minibatches, so Python is entered once a lease.

`TrainStep.run` loops over an iterator inside one `tf.function`. The next minibatch is always in hand
(an `Optional` that travels from call to call), so a call may stop after any number of steps without
losing one, and the fetch of the next overlaps the work on this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticdl.engine.inputs import num_examples, split_minibatch

if TYPE_CHECKING:
    import tensorflow as tf

    from elasticdl.engine.state import TrainingModel

__all__ = ["Outcome", "TrainStep"]


@dataclass(frozen=True)
class Outcome:
    """What one call did."""

    steps: int
    examples: int
    loss_sum: float
    """Sum over the examples of their minibatch's loss."""
    last_loss: float
    is_finite: bool
    is_exhausted: bool

    @property
    def loss(self) -> float:
        return self.loss_sum / self.examples if self.examples else float("nan")


class TrainStep:
    """Runs training minibatches of a model."""

    def __init__(self, training: TrainingModel) -> None:
        import tensorflow as tf

        self._training = training
        self._step: Callable[..., Any] = tf.function(
            self._one_step, reduce_retracing=True, autograph=False
        )
        self._loop = tf.function(self._many_steps, reduce_retracing=True, autograph=False)

    def run(self, iterator: Any, minibatch: Any, max_steps: int) -> tuple[Outcome, Any]:
        """Train on up to `max_steps` minibatches; returns what was done and the next minibatch."""
        import tensorflow as tf

        run = self._eager_steps if tf.config.functions_run_eagerly() else self._loop
        steps, examples, loss_sum, last, more, following = run(
            iterator, minibatch, tf.constant(max_steps)
        )
        last_loss = float(last)
        outcome = Outcome(
            steps=int(steps),
            examples=int(examples),
            loss_sum=float(loss_sum),
            last_loss=last_loss,
            is_finite=last_loss - last_loss == 0.0,
            is_exhausted=not bool(more),
        )
        return outcome, following

    def _many_steps(self, iterator: Any, minibatch: Any, max_steps: tf.Tensor) -> Any:
        import tensorflow as tf

        def more(step: Any, examples: Any, loss_sum: Any, last: Any, following: Any) -> tf.Tensor:
            return (step < max_steps) & following.has_value() & tf.math.is_finite(last)

        def body(step: Any, examples: Any, loss_sum: Any, last: Any, following: Any) -> Any:
            loss, count = self._step(following.get_value())
            return (
                step + 1,
                examples + tf.cast(count, tf.int64),
                loss_sum + tf.cast(loss, tf.float64) * tf.cast(count, tf.float64),
                loss,
                iterator.get_next(),
            )

        step, examples, loss_sum, last, following = tf.while_loop(
            more,
            body,
            [
                0,
                tf.constant(0, tf.int64),
                tf.constant(0.0, tf.float64),
                tf.constant(0.0),
                minibatch,
            ],
        )
        return step, examples, loss_sum, last, following.has_value(), following

    def _eager_steps(self, iterator: Any, minibatch: Any, max_steps: tf.Tensor) -> Any:
        """The same, a Python step at a time: what `--debug` runs, so that a debugger can stop."""
        step, examples, loss_sum, last = 0, 0, 0.0, 0.0
        while step < int(max_steps) and bool(minibatch.has_value()) and last - last == 0.0:
            loss, count = self._one_step(minibatch.get_value())
            step, examples, last = step + 1, examples + int(count), float(loss)
            loss_sum += last * int(count)
            minibatch = iterator.get_next()
        return step, examples, loss_sum, last, bool(minibatch.has_value()), minibatch

    def _one_step(self, element: Any) -> tuple[tf.Tensor, tf.Tensor]:
        import tensorflow as tf

        training = self._training
        batch = split_minibatch(element)
        variables = training.model.trainable_variables
        with tf.GradientTape() as tape:
            loss, outputs = training.loss(batch, training=True)
            scaled = training.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        training.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        if training.metrics is not None:
            training.metrics.update(batch, outputs)
        return tf.cast(loss, tf.float32), num_examples(batch.features)
