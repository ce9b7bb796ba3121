"""Data to predict against the data that a model was trained on: its columns, by name.

Columns are read in the order of the training, whatever their order in the file. What is not there may be the
label, which prediction does without, or a feature, which it cannot. Only the user's dataset function knows: it is
tried with two values in the place of what is missing, and when its features are the same for both, it does not look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from elasticdl.data.chunks import count
from elasticdl.data.source import Array, ArraySpec, Chunk, Metadata, Shard, Source, Structure
from elasticdl.errors import ContractError, CorruptData, DataError, UnknownName
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly

__all__ = ["open_like_training", "telling_what_is_missing"]

_FILLS = (b"0", b"1")


def open_like_training(
    config: JobConfig, spec: Spec, objects: Mapping[str, Any], trained: Sequence[str]
) -> Source:
    """The data to predict, with the columns of the training where it has columns.

    Args:
      config: the job; the parameters of the reader that were given for it are taken as they are.
      spec: what the user wrote.
      objects: real objects in the place of the config's names.
      trained: the columns that the model was trained on; none when that is not known.
    """

    def opened(columns: Sequence[str] | None) -> Source:
        params = {k: v for k, v in config.data_reader_params.items() if k != "columns"}
        params |= {"columns": list(columns)} if columns else {}
        one = replace(config, data_reader_params=params)
        return _required(assembly.open_data(one, spec, "prediction_data", objects))

    wanted = config.data_reader_params.get("columns") or trained
    as_said = (
        "data_reader_params" in config.given
        or "prediction_data" in objects
        or spec.data_reader is not None
    )
    if as_said or not wanted:
        return _required(assembly.open_data(config, spec, "prediction_data", objects))
    try:
        return opened(wanted)
    except (DataError, UnknownName):
        source = opened(None)
        have = source.metadata.column_names
        if have is None:
            return source  # a format without columns
        if set(wanted) <= set(have):
            raise
    present = [name for name in wanted if name in have]
    if isinstance(source.structure, Mapping):
        return opened(present) if present else source
    return _settled(config, spec, source, wanted, lambda: opened(present or None))


def _required(source: Source | None) -> Source:
    assert source is not None
    return source


def _settled(
    config: JobConfig,
    spec: Spec,
    source: Source,
    wanted: Sequence[str],
    without: Callable[[], Source],
) -> Source:
    """Rows of strings: with something in the place of what is missing, or without it."""
    have = source.metadata.column_names or ()
    filled = [_Filled(source, have, wanted, fill) for fill in _FILLS]
    seen = [_features(config, spec, one) for one in filled]
    if None not in seen and _same(*seen):
        return filled[0]
    missing = [name for name in wanted if name not in have]
    if list(wanted[-len(missing) :]) == missing:
        return without()  # a function that takes whole rows finds them shorter at the end
    raise DataError(_missing(have, wanted))


def _features(config: JobConfig, spec: Spec, source: Source) -> list[Any] | None:
    """The features of a first minibatch; None when the dataset function fails."""
    import tensorflow as tf

    with assembly.make_pipeline(config, spec, source, Mode.PREDICTION) as pipeline:
        try:
            element = assembly.first_minibatch(config, pipeline, source)
        except Exception:
            return None
        tensors = tf.nest.flatten(element, expand_composites=True)
        return [tensor.numpy() for tensor in tensors]


def _same(one: list[Any] | None, other: list[Any] | None) -> bool:
    pairs = list(zip(one or (), other or (), strict=True))
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs)


@contextmanager
def telling_what_is_missing(source: Source, trained: Sequence[str]) -> Iterator[None]:
    """Inside, the data is read for the first time: what fails may fail for want of a column."""
    have = source.metadata.column_names or ()
    if not have or set(trained) <= set(have):
        yield
        return
    try:
        yield
    except CorruptData:
        raise
    except (ContractError, DataError) as error:
        # It says what fails, and a label that is not there need not be why.
        lacking = " and ".join(name for name in trained if name not in have)
        raise type(error)(f"{error}\nNote: the data lacks {lacking} of the training.") from error
    except Exception as error:
        why = str(error).strip().splitlines() or [""]
        raise DataError(
            f"{_missing(have, trained)}\n  reason: {type(error).__name__}: {why[0]}"
        ) from error


def _missing(have: Sequence[str], trained: Sequence[str]) -> str:
    missing = [name for name in trained if name not in have]
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"The data has the columns {', '.join(have)}; the model was trained on {', '.join(trained)}: "
        f"{' and '.join(missing)} {verb} missing. Add what the model needs to the data."
    )


class _Filled:
    """Rows of strings in the order of the wanted columns, with a value for those that are missing."""

    def __init__(
        self, source: Source, have: Sequence[str], wanted: Sequence[str], fill: bytes
    ) -> None:
        self._source = source
        self._places = [have.index(name) if name in have else None for name in wanted]
        self._wanted = tuple(wanted)
        self._fill = fill

    @property
    def shards(self) -> Sequence[Shard]:
        return self._source.shards

    @property
    def metadata(self) -> Metadata:
        return Metadata(column_names=self._wanted)

    @property
    def structure(self) -> Structure:
        return ArraySpec(np.dtype(object), (len(self._wanted),))

    def read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        for chunk in self._source.read(shard, start, end):
            rows = np.full((count(chunk), len(self._places)), self._fill, dtype=object)
            for i, place in enumerate(self._places):
                if place is not None:
                    rows[:, i] = cast(Array, chunk)[:, place]
            yield rows
