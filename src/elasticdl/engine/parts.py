"""A part of an evaluation, as plain data: what some leases contribute, made in one process and merged in another.

parts = [evaluator.part(leases[i::2]) for i in range(2)]     # in two processes
evaluation = evaluator.merge(parts)                          # in any of them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from elasticdl.data.ledger import Lease
from elasticdl.errors import AuditFailure

if TYPE_CHECKING:
    from elasticdl.engine.metric_states import States

__all__ = ["LeaseSum", "Part", "check_whole", "of_any_size", "plain", "tensors_of"]


@dataclass(frozen=True)
class LeaseSum:
    """The examples of a lease, and the sum of their losses."""

    number: int
    examples: int
    loss_sum: float


@dataclass(frozen=True)
class Part:
    """What some leases contribute. Holds numbers and numpy arrays alone, so it can be pickled.

    Attributes:
      sums: of each lease.
      states: the variables of each Keras metric that can be summed.
      minibatches: by the number of the lease, the (features, labels, weights, outputs) that metrics which cannot be
        summed are computed on; empty when there are none of those.
    """

    sums: tuple[LeaseSum, ...]
    states: States
    minibatches: Mapping[int, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ragged:
    """A RaggedTensor."""

    values: np.ndarray[Any, Any]
    splits: tuple[np.ndarray[Any, Any], ...]


@dataclass(frozen=True)
class Sparse:
    """A SparseTensor."""

    indices: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    shape: np.ndarray[Any, Any]


def check_whole(parts: Sequence[Part], leases: Sequence[Lease]) -> None:
    """Each lease is in exactly one part. Raises `AuditFailure` otherwise."""
    found = Counter(one.number for part in parts for one in part.sums)
    wanted = {lease.number for lease in leases}
    faults = {
        "evaluated twice": {number for number, times in found.items() if times > 1},
        "left out": wanted - set(found),
        "of other data": set(found) - wanted,
    }
    if told := [f"{what}: {sorted(numbers)[:8]}" for what, numbers in faults.items() if numbers]:
        raise AuditFailure(
            f"The parts of an evaluation must have each of its {len(wanted)} leases once. {'; '.join(told)}."
        )


def plain(tensors: Any) -> Any:
    """A structure of tensors with arrays in their place."""
    import tensorflow as tf

    return tf.nest.map_structure(_plain, tensors)


def _plain(tensor: Any) -> Any:
    import tensorflow as tf

    if tensor is None:
        return None
    if isinstance(tensor, tf.RaggedTensor):
        splits = tuple(s.numpy() for s in tensor.nested_row_splits)
        return Ragged(tensor.flat_values.numpy(), splits)
    if isinstance(tensor, tf.SparseTensor):
        return Sparse(tensor.indices.numpy(), tensor.values.numpy(), tensor.dense_shape.numpy())
    return np.asarray(tensor)


def tensors_of(arrays: Any) -> Any:
    """The tensors that `plain` was given."""
    import tensorflow as tf

    return tf.nest.map_structure(_tensor, arrays)


def _tensor(value: Any) -> Any:
    import tensorflow as tf

    if value is None:
        return None
    if isinstance(value, Ragged):
        return tf.RaggedTensor.from_nested_row_splits(value.values, value.splits)
    if isinstance(value, Sparse):
        return tf.SparseTensor(value.indices, value.values, value.shape)
    return tf.convert_to_tensor(value)


def of_any_size(tensors: Any) -> Any:
    """The types of minibatches that are like this one, but for the number of their rows."""
    import tensorflow as tf

    return tf.nest.map_structure(_of_any_size, tensors)


def _of_any_size(tensor: Any) -> Any:
    import tensorflow as tf

    if tensor is None or not tensor.shape.rank:
        return None if tensor is None else tf.TensorSpec([], tensor.dtype)
    shape = [None, *tensor.shape[1:]]
    if isinstance(tensor, tf.RaggedTensor):
        rank, splits = tensor.ragged_rank, tensor.row_splits.dtype
        return tf.RaggedTensorSpec(shape, tensor.dtype, rank, splits)
    if isinstance(tensor, tf.SparseTensor):
        return tf.SparseTensorSpec(shape, tensor.dtype)
    return tf.TensorSpec(shape, tensor.dtype)
