"""A step that several processes take together: each computes its part, the sum is what everybody applies.

What travels is one flat buffer: the gradients of all variables, times the number of examples; what the forward pass
changes beside them; and a tail of statistics with one slot for each member. The sum is divided by all examples once, so
parts of any size weigh what they should, and a process without examples takes part with nothing.

Until the sum is there nothing in the model changes: what the forward pass does to moving statistics, metrics and
seeds is taken back before the buffer leaves. A step whose sum never comes has not happened.

All of it is one graph, and one call of it may take several steps: what Python does between two calls is time in which
no member computes. Where a call is broken, the steps before are taken, and what was said in them is known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticdl.engine.group import Group
from elasticdl.engine.inputs import Minibatch, num_examples, split_minibatch
from elasticdl.engine.randomness import keras_seed_state

if TYPE_CHECKING:
    import keras
    import numpy as np

    from elasticdl.engine.state import TrainingModel

__all__ = ["APPLIED", "EMPTY", "FAILED", "IDLE", "LAST", "SharedStep", "Sum"]

IDLE, APPLIED, LAST, EMPTY, FAILED = range(5)
"""What a member says of its lease: there is none; a minibatch; the last one; it has no minibatch; it cannot be read."""

_TAIL = 5
"""The loss, the examples, who asks for a pause, who asks to stop, who has to return to Python; then each member's slot,
then its examples."""


@dataclass(frozen=True)
class Sum:
    """What the members said together in one step."""

    loss_sum: float
    examples: int
    pause: bool
    stop: bool
    slots: tuple[int, ...]
    """By rank, what each said of its own work."""
    shares: tuple[int, ...] = ()
    """By rank, the examples of each."""

    @property
    def loss(self) -> float:
        return self.loss_sum / self.examples if self.examples else 0.0

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.loss_sum)

    def counts(self, *, shared: bool) -> bool:
        """Whether it was a step: of a minibatch that all share, nothing counts when a part is missing."""
        return self.examples > 0 and not (shared and FAILED in self.slots)


class SharedStep:
    """The graphs of a step.

    Args:
      training: the model.
      group: who takes part.
      element_spec: the types and shapes of minibatches.
      shared: whether all members have the same minibatch, and each takes its slice of it.
    """

    def __init__(
        self, training: TrainingModel, group: Group, element_spec: Any, *, shared: bool
    ) -> None:
        import tensorflow as tf

        self._training = training
        self._group = group
        self._shared = shared
        self._moving = _moving_statistics(training.model)
        self._counts = training.metrics.variables if training.metrics is not None else []
        self._seeds = _seed_states(training.model)
        self._variables: list[Any] = []
        """Those that have a gradient, known as soon as the graph is traced."""
        self._dtype = _widest(training.model.trainable_variables)
        self._apply = tf.function(self._applied, reduce_retracing=True, autograph=False)
        self._optional = tf.OptionalSpec(element_spec)
        numbers = (tf.TensorSpec([4], tf.int32), tf.TensorSpec([3], self._dtype))
        with tf.device(group.device):
            self._nothing_said = tf.zeros([0, 0], self._dtype)
            # Variables, since what a call that fails returns is lost.
            self._said = tf.Variable(
                self._nothing_said, trainable=False, shape=tf.TensorShape([None, None])
            )
            self._said_at = tf.Variable(0.0, trainable=False, dtype=tf.float64)
            self._no_minibatch = tf.experimental.Optional.empty(element_spec)
            # To find the right graph of a `tf.function` takes Python as long as to call it. There is one.
            self._turns = tf.function(self._take_turns, autograph=False).get_concrete_function(
                tf.TensorSpec([None], tf.variant), *numbers
            )

    def warm_up(self, element: Any) -> None:
        """Take a step alone and take it back: what TensorFlow prepares at first is done while others train."""
        import tensorflow as tf

        kept = self._training.save()
        for given in ([tf.experimental.Optional.from_value(element)], []):
            self.run(given, IDLE, 0)
        self._training.load(kept)

    def run(self, minibatches: Sequence[Any], slot: int, version: int) -> None:
        """Take part in steps, one for each minibatch, or in one without any. `taken` says what came of them.

        There are fewer when something was said that Python has to see to, on this member or another one.

        Args:
          minibatches: `Optional`s that have one.
          slot: what to say with the last of them; with the others it is that they are applied.
          version: of the first step.

        Raises:
          GroupBroken: the sum of a step never came. Those before it are taken.
        """
        import tensorflow as tf

        group = self._group
        keys = [group.number, group.size, group.rank, version & 0x7FFFFFFF]
        flags = [float(group.wants_pause), float(group.wants_stop), float(slot)]
        self._said.assign(self._nothing_said)
        with tf.device(group.device), group.guarded():
            given = list(minibatches) or [self._no_minibatch]
            self._turns(
                tf.stack(tf.nest.flatten(given, expand_composites=True)),
                tf.constant(keys, tf.int32),
                tf.constant(flags, self._dtype),
            )

    @property
    def taken(self) -> list[Sum]:
        """What the members said in the steps of the last call, a broken one too."""
        return [_read(tail) for tail in self._said.numpy()]

    @property
    def taken_at(self) -> float:
        """When the last of them was taken, by the clock of `time.monotonic`."""
        return time.monotonic() - max(0.0, time.time() - float(self._said_at.numpy()))

    def _take_turns(self, minibatches: Any, keys: Any, flags: Any) -> None:
        """The sum is the same op in the same loop for who has a minibatch and who has none.

        TensorFlow knows a sum by its loop and the number of the pass, too: all members have to be in the same ones.
        """
        import tensorflow as tf

        count = tf.shape(minibatches)[0]

        def body(turn: Any, goes_on: Any) -> tuple[Any, Any]:
            numbers = tf.add(keys, [0, 0, 0, turn])
            minibatch = tf.nest.pack_sequence_as(
                self._optional, [minibatches[turn]], expand_composites=True
            )
            computed, loss, examples = tf.cond(
                minibatch.has_value(),
                lambda: self._computed(minibatch.get_value(), numbers),
                self._nothing,
            )
            is_last = turn + 1 == count
            said = [
                *tf.unstack(flags[:2]),
                tf.cast(is_last, self._dtype),
                tf.where(is_last, flags[2], tf.cast(APPLIED, self._dtype)),
            ]
            tail = self._sum_and_apply([computed, *_tail(loss, examples, keys, said)], keys)
            return turn + 1, tf.reduce_all(tail[2:_TAIL] <= 0) & self._is_plain(tail, keys)

        tf.while_loop(lambda turn, goes_on: goes_on & (turn < count), body, [0, True])

    def _is_plain(self, tail: Any, keys: Any) -> Any:
        """Whether nothing was said but that minibatches are applied, and the next ones may be."""
        import tensorflow as tf

        slots = tail[_TAIL : _TAIL + keys[1]]
        return tf.math.is_finite(tail[0]) & tf.reduce_all(slots == float(APPLIED))

    def _computed(self, element: Any, keys: Any) -> tuple[Any, Any, Any]:
        """What this member's minibatch adds to the sum, its loss times its examples, and these."""
        import tensorflow as tf

        training = self._training
        batch = split_minibatch(element)
        rows = num_examples(batch.features)
        if self._shared:
            batch, rows = _slice(batch, rows, keys[2], keys[1])
        before = [tf.identity(v.value) for v in (*self._moving, *self._counts, *self._seeds)]
        for state in self._seeds:
            state.assign(_folded(tf.identity(state.value), keys[2], keys[3]))
        variables = training.model.trainable_variables
        with tf.GradientTape() as tape:
            loss, outputs = training.loss(batch, training=True)
            scaled = training.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        if training.metrics is not None:
            training.metrics.update(batch, outputs)
        moved = [tf.identity(v.value) for v in self._moving]
        counted = [
            tf.identity(v.value) - b
            for v, b in zip(self._counts, before[len(moved) :], strict=False)
        ]
        put_back = [
            v.value.assign(b, read_value=False)
            for v, b in zip((*self._moving, *self._counts, *self._seeds), before, strict=True)
        ]
        self._variables = [v for v, g in zip(variables, gradients, strict=True) if g is not None]
        examples = tf.cast(rows, self._dtype)
        # Who has no examples of its own adds nothing, not even what is not a number.
        weighed = [
            tf.math.multiply_no_nan(tf.cast(tf.convert_to_tensor(t), self._dtype), examples)
            for t in (*(g for g in gradients if g is not None), *moved)
        ]
        counted = [
            tf.math.multiply_no_nan(tf.cast(t, self._dtype), tf.sign(examples)) for t in counted
        ]
        total = tf.math.multiply_no_nan(tf.cast(loss, self._dtype), examples)
        with tf.control_dependencies([op for op in put_back if op is not None]):
            parts = [tf.reshape(t, [-1]) for t in (*weighed, *counted)]
            return tf.concat(parts, 0), total, examples

    def _nothing(self) -> tuple[Any, Any, Any]:
        import tensorflow as tf

        size = sum(_size(v) for v in (*self._variables, *self._moving, *self._counts))
        none = tf.zeros([], self._dtype)
        return tf.zeros([size], self._dtype), none, none

    def _sum_and_apply(self, parts: list[Any], keys: Any) -> Any:
        """The sum of everybody's parts goes into the model, if the step counts. Notes and returns its tail."""
        import tensorflow as tf

        summed = self._group.reduce(tf.concat(parts, 0), keys)
        length = tf.shape(summed)[0] - _TAIL - 2 * keys[1]
        tail = summed[length:]
        counts = tail[1] > 0
        if self._shared:
            slots = tail[_TAIL : _TAIL + keys[1]]
            counts &= tf.reduce_all(slots != float(FAILED))
        tf.cond(counts, lambda: self._apply(summed[:length], tail[1]), lambda: None)
        before = tf.reshape(self._said.value(), [-1, tf.shape(tail)[0]])
        self._said.assign(tf.concat([before, tail[tf.newaxis]], 0))
        with tf.control_dependencies([tail]):
            self._said_at.assign(tf.timestamp())
        return tail

    def _applied(self, summed: Any, examples: Any) -> None:
        import tensorflow as tf

        everything = (*self._variables, *self._moving, *self._counts)
        parts = tf.split(summed, [_size(v) for v in everything])
        shaped = [tf.reshape(part, v.shape) for part, v in zip(parts, everything, strict=True)]
        means = [
            tf.cast(part / examples, v.dtype)
            for part, v in zip(shaped, (*self._variables, *self._moving), strict=False)
        ]
        self._training.optimizer.apply_gradients(
            zip(means[: len(self._variables)], self._variables, strict=True)
        )
        for variable, value in zip(self._moving, means[len(self._variables) :], strict=True):
            variable.assign(value)
        for variable, value in zip(self._counts, shaped[len(means) :], strict=True):
            variable.assign(variable.value + tf.cast(value, variable.dtype))


def _tail(loss: Any, examples: Any, keys: Any, said: Sequence[Any]) -> list[Any]:
    import tensorflow as tf

    none = tf.zeros_like(loss)
    slots = tf.one_hot(keys[2], keys[1], on_value=said[3], off_value=none)
    shares = tf.one_hot(keys[2], keys[1], on_value=examples, off_value=none)
    return [tf.stack([loss, examples, *said[:3]]), slots, shares]


def _read(tail: np.ndarray[Any, Any]) -> Sum:
    size = (len(tail) - _TAIL) // 2
    return Sum(
        loss_sum=float(tail[0]),
        examples=int(tail[1]),
        pause=tail[2] > 0,
        stop=tail[3] > 0,
        slots=tuple(int(slot) for slot in tail[_TAIL : _TAIL + size]),
        shares=tuple(int(examples) for examples in tail[_TAIL + size :]),
    )


def _slice(batch: Minibatch, rows: Any, rank: Any, size: Any) -> tuple[Minibatch, Any]:
    """The rows of a minibatch that are a member's own, and how many.

    With fewer rows than members some have none. They compute on a row of another's, which weighs nothing: there are
    ops that refuse to take no rows, a convolution's gradient for one.
    """
    import tensorflow as tf

    start, end = rows * rank // size, rows * (rank + 1) // size
    own = end - start
    end = tf.maximum(end, start + 1)

    def cut(tensor: Any) -> Any:
        if isinstance(tensor, tf.SparseTensor):
            rest = tensor.dense_shape[1:]
            begin = tf.concat([[tf.cast(start, tf.int64)], tf.zeros_like(rest)], 0)
            return tf.sparse.slice(
                tensor, begin, tf.concat([[tf.cast(end - start, tf.int64)], rest], 0)
            )
        return tensor[start:end]

    def cut_all(tensors: Any) -> Any:
        return None if tensors is None else tf.nest.map_structure(cut, tensors)

    parts = (cut_all(batch.features), cut_all(batch.labels), cut_all(batch.weights))
    return Minibatch(parts), own


def _folded(state: Any, rank: Any, version: Any) -> Any:
    """A seed for this member in this step: a function of the kept one, the rank and the step alone."""
    import tensorflow as tf

    kept = tf.cast(state, tf.int32)
    seed = tf.stack([kept[0] + 7919 * (rank + 1), kept[1] + version])
    drawn = tf.random.stateless_uniform([2], seed, 0, 2**31 - 1, tf.int32)
    return tf.cast(drawn, state.dtype)


def _moving_statistics(model: keras.Model) -> list[Any]:
    """What layers count as they see examples, such as the means of a batch normalization."""
    found: dict[int, Any] = {}
    for layer in model._flatten_layers():
        for variable in layer._non_trainable_variables if layer.trainable else ():
            if "float" in str(variable.dtype):
                found[id(variable)] = variable
    return list(found.values())


def _seed_states(model: keras.Model) -> list[Any]:
    states = [g.state for layer in model._flatten_layers() for g in layer._seed_generators]
    return list({id(state): state for state in (*states, keras_seed_state())}.values())


def _size(variable: Any) -> int:
    return math.prod(int(n) for n in variable.shape)


def _widest(variables: Sequence[Any]) -> Any:
    import tensorflow as tf

    return tf.float64 if any(str(v.dtype) == "float64" for v in variables) else tf.float32
