"""A user's dataset function, with the batching that belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import Role, bind, describe, parameters
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Batches
from elasticdl.errors import ContractError

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["PlainBatches", "bind_dataset", "finished"]

_DATASET = Role.of("dataset", "ds", "data", "records", "raw_dataset")
_MODE = Role.of("mode")
_METADATA = Role.of("metadata", "meta", "_metadata")
_TRAINING = Role.of("training", "is_training", by_name=True)


class _TrainingFlag(str):
    """For a parameter called `training`: true while training, and still equal to its `Mode`."""

    def __bool__(self) -> bool:
        return str(self) == Mode.TRAINING.value


def bind_dataset(fn: Any) -> Batches:
    """Batches of `dataset_fn(dataset, mode[, metadata])` or `(dataset, training)`."""
    if not callable(fn):
        raise ContractError(
            f"The dataset_fn is {fn!r} ({type(fn).__name__}). Give a function dataset_fn(dataset, "
            "mode)."
        )
    bound = bind("dataset_fn", fn, _roles(fn))

    def batches(
        records: tf.data.Dataset,
        mode: Mode,
        metadata: Any,
        batch_size: int,
        *,
        ragged: bool = False,
    ) -> tf.data.Dataset:
        import tensorflow as tf

        flag = _TrainingFlag(mode)
        dataset = bound(dataset=records, mode=mode, metadata=metadata, training=flag)
        if not isinstance(dataset, tf.data.Dataset):
            shown = "nothing (None)" if dataset is None else type(dataset).__name__
            raise ContractError(
                f"{describe('dataset_fn', fn)} returned {shown} in {mode} mode. Return the "
                "tf.data.Dataset: "
                "end the function with `return dataset`."
            )
        return finished(_stacked(dataset, batch_size, ragged), mode)

    return batches


def _roles(fn: Callable[..., Any]) -> tuple[Role, ...]:
    names = {p.name for p in parameters(fn) or ()}
    # A `training` stands where the mode would: a third parameter is then the metadata.
    if names & _TRAINING.names and not names & _MODE.names:
        return (_DATASET, _METADATA, _TRAINING)
    return (_DATASET, _MODE, _METADATA, _TRAINING)


class PlainBatches:
    """Batches of records that are examples already, such as arrays."""

    def __call__(
        self,
        records: tf.data.Dataset,
        mode: Mode,
        metadata: Any,
        batch_size: int,
        *,
        ragged: bool = False,
    ) -> tf.data.Dataset:
        return self.finish(_stacked(records, batch_size, ragged), mode)

    def finish(self, batches: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
        """For a source that cuts minibatches itself."""
        element = batches.element_spec
        if mode != Mode.PREDICTION and not isinstance(element, tuple):
            raise ContractError(
                "There is no dataset_fn, and the records are not (features, labels) pairs but "
                f"{element}. Add a "
                "function dataset_fn(dataset, mode) that returns a dataset of such pairs."
            )
        return finished(batches, mode)


def _stacked(dataset: tf.data.Dataset, batch_size: int, ragged: bool) -> tf.data.Dataset:
    return dataset.ragged_batch(batch_size) if ragged else dataset.batch(batch_size)


def finished(dataset: tf.data.Dataset, mode: Mode) -> tf.data.Dataset:
    """For prediction, of (features, labels) only the features."""
    if mode == Mode.PREDICTION and isinstance(dataset.element_spec, tuple):
        return dataset.map(lambda features, *rest: features)
    return dataset
