"""Prediction: the model's outputs for the records of a lease, in their order.

As in training, one graph call runs many minibatches. Their outputs are gathered in the graph, up to a limit
of bytes a call, so that memory stays flat however long a lease is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticdl.data.ledger import Lease
from elasticdl.data.pipeline import Leases
from elasticdl.data.source import ArraySpec
from elasticdl.engine.explain import reading
from elasticdl.engine.outputs import OutputForm, rows_of, specs_of
from elasticdl.engine.pace import CALL_S

if TYPE_CHECKING:
    from elasticdl.engine.state import TrainingModel

__all__ = ["Block", "Predictor"]

CALL_BYTES = 16 << 20


@dataclass(frozen=True)
class Block:
    """The predictions of some minibatches, one after the other."""

    columns: Mapping[str, Any]
    """By output: an array, or a list where the lengths of rows vary."""
    sizes: list[int]
    """How many rows each minibatch has."""

    @property
    def num_rows(self) -> int:
        return sum(self.sizes)

    def minibatches(self) -> Iterator[dict[str, Any]]:
        """The columns of one minibatch after the other."""
        start = 0
        for size in self.sizes:
            yield {name: values[start : start + size] for name, values in self.columns.items()}
            start += size


class Predictor:
    """Runs a model over leases.

    Args:
      training: the model, made for prediction.
      pipeline: the data, in prediction mode.
      element: a first minibatch of it: features.
      element_spec: their types and shapes, where the pipeline has more than features.
    """

    def __init__(
        self, training: TrainingModel, pipeline: Leases, element: Any, element_spec: Any = None
    ) -> None:
        import tensorflow as tf

        self._training = training
        self._pipeline = pipeline
        self._element_spec = pipeline.element_spec if element_spec is None else element_spec
        self.form = OutputForm(training.model, element, self._outputs(element))
        self._step = tf.function(self._one_step, reduce_retracing=True, autograph=False)
        self._loop = tf.function(self._many_steps, reduce_retracing=True, autograph=False)
        specs = self._specs(element)
        self.schema: dict[str, ArraySpec] = dict(zip(self.form.names, specs, strict=True))
        self._max_steps = self._steps_in_bytes(element)
        self._step_s: float | None = None

    @property
    def pipeline(self) -> Leases:
        return self._pipeline

    def predict(self, lease: Lease, following: Lease | None = None) -> Iterator[Block]:
        """The lease's predictions, in as few blocks as fit the limits."""
        import tensorflow as tf

        with reading(self._pipeline, lease):
            varies = any(None in spec.shape for spec in self.schema.values())
            if varies or tf.config.functions_run_eagerly():
                yield from self._one_by_one(lease)
            else:
                yield from self._many_at_once(lease, following)

    def _many_at_once(self, lease: Lease, following: Lease | None) -> Iterator[Block]:
        import tensorflow as tf

        iterator = self._pipeline.open(lease)
        self._pipeline.prepare(following)
        minibatch = iterator.get_next()
        is_more = bool(minibatch.has_value())
        while is_more:
            began = time.monotonic()
            limit = tf.constant(self._steps_ahead())
            sizes, columns, more, minibatch = self._loop(iterator, minibatch, limit)
            block = Block(
                columns=dict(zip(self.form.names, (c.numpy() for c in columns), strict=True)),
                sizes=sizes.numpy().tolist(),
            )
            is_more = bool(more)
            self._note(len(block.sizes), time.monotonic() - began)
            yield block
        self._pipeline.finish(lease)

    def _one_by_one(self, lease: Lease) -> Iterator[Block]:
        """A minibatch at a time, in Python: for a debugger, and for rows of several lengths."""
        for element in self._pipeline.elements(lease):
            outputs = self._step(element)
            columns = {
                name: rows_of(tensor, self.schema[name])
                for name, tensor in zip(self.form.names, outputs, strict=True)
            }
            yield Block(columns, [len(next(iter(columns.values())))])

    def _outputs(self, features: Any) -> Any:
        return self._training.model(self._training.bind(features), training=False)

    def _one_step(self, features: Any) -> list[Any]:
        return self.form.flat(self._outputs(features))

    def _many_steps(self, iterator: Any, minibatch: Any, max_steps: Any) -> Any:
        import tensorflow as tf

        def more(step: Any, following: Any, *_: Any) -> Any:
            return (step < max_steps) & following.has_value()

        def body(step: Any, following: Any, sizes: Any, columns: Any) -> Any:
            outputs = self._step(following.get_value())
            return (
                step + 1,
                iterator.get_next(),
                sizes.write(step, tf.shape(outputs[0])[0]),
                [column.write(step, o) for column, o in zip(columns, outputs, strict=True)],
            )

        sizes = tf.TensorArray(tf.int32, size=0, dynamic_size=True, element_shape=[])
        columns = [
            tf.TensorArray(
                tf.string if spec.dtype.kind == "O" else tf.as_dtype(spec.dtype),
                size=0,
                dynamic_size=True,
                infer_shape=False,
                element_shape=[None, *spec.shape],
            )
            for spec in self.schema.values()
        ]
        _, following, sizes, columns = tf.while_loop(more, body, [0, minibatch, sizes, columns])
        gathered = [column.concat() for column in columns]
        return sizes.stack(), gathered, following.has_value(), following

    def _specs(self, element: Any) -> list[ArraySpec]:
        """What is known of the outputs of every minibatch, not of the first one alone."""
        import tensorflow as tf

        if tf.config.functions_run_eagerly():  # to trace the user's code would surprise a debugger
            return specs_of(self.form.ranks, list(self._step(element)))
        made = self._step.get_concrete_function(self._element_spec)
        return specs_of(self.form.ranks, list(made.structured_outputs))

    def _steps_in_bytes(self, element: Any) -> int:
        from elasticdl.engine.inputs import num_examples

        row = 0
        for spec in self.schema.values():
            size = 64 if spec.dtype.kind == "O" else spec.dtype.itemsize
            row += size * math.prod(n or 1 for n in spec.shape)
        return max(1, CALL_BYTES // max(1, row * int(num_examples(element))))

    def _steps_ahead(self) -> int:
        """The first call traces and compiles: it takes one step to learn how long one is."""
        if self._step_s is None:
            return 1
        return max(1, min(self._max_steps, int(CALL_S / max(self._step_s, 1e-6))))

    def _note(self, steps: int, seconds: float) -> None:
        step_s = seconds / steps
        self._step_s = min(step_s, CALL_S) if self._step_s is None else step_s
