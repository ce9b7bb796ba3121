"""TensorFlow's errors about a user's data and shapes, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elasticdl.data.pipeline import Pipeline
from elasticdl.errors import ContractError, DataError, ElasticDLError

if TYPE_CHECKING:
    from elasticdl.engine.inputs import Minibatch

__all__ = ["UnevenShapes", "explain_loss", "reading"]


class UnevenShapes(DataError):
    """Records that cannot be stacked into a dense minibatch."""


@contextmanager
def reading(pipeline: Pipeline) -> Iterator[None]:
    """Inside, minibatches are fetched: an error of a reader or of the data comes out as itself."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        pipeline.reraise()
        message = _first_line(error)
        if "Cannot batch tensors with" in message or "Cannot add tensor to the batch" in message:
            raise UnevenShapes(
                f"The records of a minibatch have different shapes: {message} Make them alike in the "
                "dataset function."
            ) from error
        raise


@contextmanager
def explain_loss(batch: Minibatch, outputs: list[Any]) -> Iterator[None]:
    """Inside, the loss is computed for the first time: say what it was given when that fails.

    Code of the user's that raises an error of its own is left alone.
    """
    import tensorflow as tf

    try:
        yield
    except ElasticDLError:
        raise
    except (tf.errors.OpError, ValueError, TypeError) as error:
        if not _raised_by_library(error):
            raise
        raise ContractError(
            "The loss cannot be computed from these labels and outputs.\n"
            f"  labels:  {_describe(batch.labels)}\n"
            f"  outputs: {_describe(outputs[0]) if outputs else 'the model failed before it had any'}\n"
            f"  reason:  {_first_line(error)}\n"
            "Make the labels' shape and type in the dataset function fit the loss."
        ) from error


def _raised_by_library(error: BaseException) -> bool:
    """Whether the innermost frame is TensorFlow's or Keras', not the user's own `raise`."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    path = frame.tb_frame.f_code.co_filename if frame is not None else ""
    return bool(re.search(r"[/\\](tensorflow|keras)[/\\]", path))


def _describe(tensors: Any) -> str:
    import tensorflow as tf

    if isinstance(tensors, dict):
        return ", ".join(f"{name}: {_describe(value)}" for name, value in tensors.items())
    if isinstance(tensors, list | tuple):
        return ", ".join(map(_describe, tensors))
    dtype = tf.as_dtype(tensors.dtype).name
    return f"{dtype} of shape {tuple(tensors.shape)}"


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    text = re.sub(r"\{\{.*?\}\}\s*", "", text)
    return text.splitlines()[0].strip() if text else type(error).__name__
