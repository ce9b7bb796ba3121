"""TensorFlow's and Keras' errors about a user's data and shapes, in words.

An exception that the user's own code raised is left alone, with its own traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from elasticdl.data.ledger import Lease
from elasticdl.data.pipeline import ENDLESS, Leases
from elasticdl.errors import ContractError, DataError, ElasticDLError, RunError

__all__ = [
    "UnevenShapes",
    "calling_loss",
    "calling_metrics",
    "calling_model",
    "describe",
    "reading",
]

_LIBRARY = re.compile(r"[/\\](tensorflow|keras)[/\\]")
_OURS = re.compile(r"[/\\]elasticdl[/\\](engine|contract|runtime)[/\\]|[/\\]elasticdl[/\\]api\.py")


class UnevenShapes(DataError):
    """Records that cannot be stacked into a dense minibatch."""


@contextmanager
def reading(pipeline: Leases, lease: Lease) -> Iterator[None]:
    """Inside, minibatches of a lease are fetched and perhaps trained on: say which record fails."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        pipeline.reraise()
        message = _first_line(error)
        if ENDLESS in str(error):
            raise DataError(
                "The dataset function repeats its records without end. Remove `.repeat()` from it: "
                "--num_epochs says how often the data is gone through."
            ) from error
        if "Cannot batch tensors with" in message or "Cannot add tensor to the batch" in message:
            raise UnevenShapes(
                f"The records of a minibatch have different shapes: {message} "
                "The first records were alike, so they are stacked densely. Make all of them alike in "
                "the dataset function."
            ) from error
        if "Traceback (most recent call last)" in str(error):
            raise  # Python code of the user's, inside a dataset: its text has their lines
        # Reading the lease again takes its time: only for an error that came out of reading.
        if "Iterator" in str(error) and (record := pipeline.find_fault(lease)) is not None:
            raise DataError(
                f"The dataset function fails on record {record} of {lease.shard}: {message} "
                "Mend the record, or the function."
            ) from error
        if "Iterator" in str(error) and pipeline.is_replayed:
            raise DataError(f"Reading {lease.shard} fails: {message}") from error
        raise RunError(
            f"The model fails in the records [{lease.start}, {lease.end}) of {lease.shard}: "
            f"{message}{_where(error)}"
        ) from error


@contextmanager
def calling_model(features: Any, *, own_batches: bool = False) -> Iterator[None]:
    """Inside, the model is called for the first time. `own_batches`: the user makes the minibatches."""
    with _telling(
        lambda: "The model cannot take these features.\n" + f"  features: {describe(features)}\n",
        "Make what the preprocessor yields fit the model's inputs."
        if own_batches
        else "Make the features of the dataset function fit the model's inputs. (A dataset function that "
        "batches must not: --minibatch_size does it.)",
    ):
        yield


@contextmanager
def calling_loss(batch: Any, outputs: Any, *, own_batches: bool = False) -> Iterator[None]:
    """Inside, the loss is computed for the first time. `own_batches`: the user makes the minibatches."""
    labels, weights = batch.labels, batch.weights
    weighed = "" if weights is None else f"  weights:  {describe(weights)}\n"
    with _telling(
        lambda: (
            f"The loss cannot be computed from these labels{', weights' if weighed else ''} and outputs.\n"
            f"  labels:   {describe(labels)}\n{weighed}  outputs:  {describe(outputs)}\n"
        ),
        f"Make the labels{', and the weights,' if weighed else ''} of the "
        f"{'preprocessor' if own_batches else 'dataset function'} fit the loss.",
    ):
        yield


@contextmanager
def calling_metrics(labels: Any, outputs: Any) -> Iterator[None]:
    """Inside, the metrics of a compiled model are updated for the first time."""
    with _telling(
        lambda: (
            "The metrics cannot be computed from these labels and outputs.\n"
            f"  labels:   {describe(labels)}\n  outputs:  {describe(outputs)}\n"
        ),
        "Make the labels fit the metrics that the model is compiled with.",
    ):
        yield


@contextmanager
def _telling(what: Any, remedy: str) -> Iterator[None]:
    import tensorflow as tf

    try:
        yield
    except ElasticDLError:
        raise
    except (tf.errors.OpError, ValueError, TypeError) as error:
        if not _raised_by_library(error):
            raise
        raise ContractError(
            f"{what()}  reason:   {_first_line(error)}{_where(error)}\n{remedy}"
        ) from error


def describe(tensors: Any) -> str:
    """Types and shapes of some tensors."""
    import tensorflow as tf

    if tensors is None:
        return "nothing (None)"
    if isinstance(tensors, dict):
        return ", ".join(f"{name}: {describe(value)}" for name, value in tensors.items())
    if isinstance(tensors, list | tuple):
        return ", ".join(map(describe, tensors))
    if not hasattr(tensors, "dtype"):
        return type(tensors).__name__
    return f"{tf.as_dtype(tensors.dtype).name} of shape {tuple(tensors.shape)}"


def _raised_by_library(error: BaseException) -> bool:
    """Whether the innermost frame is TensorFlow's or Keras', not the user's own `raise`."""
    frames = list(_files(error.__traceback__))
    return bool(frames) and bool(_LIBRARY.search(frames[-1][0]))


def _where(error: BaseException) -> str:
    """The user's line that led there, when there is one."""
    theirs = [
        f"{path}:{line}"
        for path, line in _files(error.__traceback__)
        if not _LIBRARY.search(path) and not _OURS.search(path)
        and "site-packages" not in path and not path.startswith("<")
    ]  # fmt: skip
    return f"\n  at:       {theirs[-1]}" if theirs and _is_model_code(theirs[-1]) else ""


def _is_model_code(place: str) -> bool:
    return "contextlib.py" not in place and "/bin/" not in place


def _files(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next


_OF_TF_DATA = (
    r"^Error in user-defined function passed to \w+:\d+ transformation with iterator: \S+: "
)


def _first_line(error: BaseException) -> str:
    """The line of a long message that says what happened."""
    text = str(getattr(error, "message", None) or error).strip()
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\[[-+\d.eE,\s\[\]]{60,}\]", "[...]", text)  # Keras prints whole tensors
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    line = lines[0]
    if line.startswith("Exception encountered when calling") and len(lines) > 1:
        line = lines[1]
    elif line.startswith("Graph execution error"):
        # The traceback of the graph's making stands between; what happened is above the node.
        nodes = [i for i, text in enumerate(lines) if text.startswith("[[")]
        line = lines[nodes[0] - 1] if nodes else lines[-1]
    line = re.sub(r"\{\{.*?\}\}\s*|\s*\[Op:\w+\].*$", "", line)
    line = re.sub(_OF_TF_DATA, "", line)[:500]
    return line if line.endswith((".", ":")) else f"{line}."
