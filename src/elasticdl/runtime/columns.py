"""Data against the data that a model was trained on: its columns, by name.

Columns are read in the order of the training, whatever their order in the file. The trained model says which of
them the features depend on: these must be there. In the place of the others, such as labels, something stands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from elasticdl.artifacts.stored_model import find_trained_model, is_bare
from elasticdl.contract.spec import Spec
from elasticdl.data.chunks import count
from elasticdl.data.source import Array, ArraySpec, Chunk, Metadata, Shard, Source, Structure
from elasticdl.errors import ContractError, CorruptData, DataError, InvalidValue, UnknownName
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly
from elasticdl.runtime.needed_columns import FILL

__all__ = ["Columns", "open_like_training", "telling_what_is_missing", "trained_columns"]


@dataclass(frozen=True)
class Columns:
    """The columns of a training.

    Attributes:
      row: those that make a record, in order; none when the training's data had no names.
      needed: those of them that must be there.
    """

    row: Sequence[str] = ()
    needed: Sequence[str] = ()

    @classmethod
    def all_of(cls, names: Sequence[str] | None) -> Columns:
        return cls(names or (), names or ())


def trained_columns(config: JobConfig, *, with_labels: bool) -> Columns:
    """What the trained model says of its columns; for an evaluation all are needed."""
    if not config.trained_model or is_bare(config.trained_model):
        return Columns()
    message = find_trained_model(config.trained_model).message
    if with_labels:
        return Columns.all_of(message.columns)
    row = message.row_columns or message.columns
    return Columns(row, message.needed_columns or row)


def open_like_training(
    config: JobConfig, spec: Spec, name: str, objects: Mapping[str, Any], trained: Columns
) -> Source:
    """Data with the columns of the training, in their order, where it has columns.

    Args:
      config: the job. Columns that it names restrict what is read.
      spec: what the user wrote.
      name: the option that names the data.
      objects: real objects in the place of the config's names.
      trained: the columns that the model was trained on.
    """
    if config.feature_plan is not None:  # which says what is read, and of what is missing
        return _required(assembly.open_data(config, spec, name, objects))
    in_memory = name in objects and not _is_path(objects[name])
    if not trained.row or in_memory or spec.data_reader is not None:
        return _required(assembly.open_data(config, spec, name, objects))
    said = config.data_reader_params.get("columns") if _is_given(config) else None

    def opened(columns: Sequence[str] | None) -> Source:
        params = {k: v for k, v in config.data_reader_params.items() if k != "columns"}
        params |= {"columns": list(columns)} if columns else {}
        one = replace(config, data_reader_params=params)
        return _required(assembly.open_data(one, spec, name, objects))

    failure: Exception | None = None
    for columns in (trained.row, trained.needed):
        if said is None or set(columns) <= set(said):
            try:
                return _in_order(opened(columns), trained.row)
            except (DataError, InvalidValue, UnknownName) as error:
                failure = error
    source = opened(said)
    have = source.metadata.column_names
    if have is None:
        return source  # a format without columns
    if isinstance(source.structure, Mapping):
        present = [one for one in trained.row if one in have]
        return opened(present) if present else source
    if failure is not None and set(trained.needed) <= set(have):
        raise failure
    raise DataError(_missing(have, trained))


def _is_path(data: Any) -> bool:
    several = data if isinstance(data, list) and data else [data]
    return all(isinstance(one, str | os.PathLike) for one in several)


def _is_given(config: JobConfig) -> bool:
    return "data_reader_params" in config.given


def _required(source: Source | None) -> Source:
    assert source is not None
    return source


def _in_order(source: Source, row: Sequence[str]) -> Source:
    have = source.metadata.column_names
    if have is None or tuple(have) == tuple(row) or isinstance(source.structure, Mapping):
        return source
    return _Filled(source, have, row)


def _missing(have: Sequence[str], trained: Columns) -> str:
    missing = [name for name in trained.needed if name not in have]
    text = (
        f"The data has the columns {', '.join(have)}; the model needs {', '.join(trained.needed)}: "
        f"{_listed(missing)} missing. Add what the model needs to the data."
    )
    if not set(have) & set(trained.row):
        text += " No name fits: the data may lack its header line, or be other data."
    return text


def _listed(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"


@contextmanager
def telling_what_is_missing(source: Source, trained: Columns) -> Iterator[None]:
    """Inside, the data is read for the first time: of records with names, one may be looked up in vain."""
    have = source.metadata.column_names or ()
    missing = [name for name in trained.row if name not in have]
    if not missing or not isinstance(source.structure, Mapping):
        yield
        return
    try:
        yield
    except CorruptData:
        raise
    except (ContractError, DataError) as error:
        # It says what fails, and a label that is not there need not be why.
        lacking = " and ".join(missing)
        raise type(error)(f"{error}\nNote: the data lacks {lacking} of the training.") from error
    except Exception as error:
        why = str(error).strip().splitlines() or [""]
        raise DataError(
            f"The data has the columns {', '.join(have)}; the model was trained on "
            f"{', '.join(trained.row)}: {_listed(missing)} missing. Add what the model needs to the data."
            f"\n  reason: {type(error).__name__}: {why[0]}"
        ) from error


class _Filled:
    """Rows of strings in the order of the training, with something in the place of what is not needed."""

    def __init__(self, source: Source, have: Sequence[str], row: Sequence[str]) -> None:
        self._source = source
        self._places = [have.index(name) if name in have else None for name in row]
        self._row = tuple(row)

    @property
    def shards(self) -> Sequence[Shard]:
        return self._source.shards

    @property
    def metadata(self) -> Metadata:
        return Metadata(column_names=self._row)

    @property
    def structure(self) -> Structure:
        return ArraySpec(np.dtype(object), (len(self._row),))

    def read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        for chunk in self._source.read(shard, start, end):
            rows = np.full((count(chunk), len(self._row)), FILL, dtype=object)
            for i, place in enumerate(self._places):
                if place is not None:
                    rows[:, i] = cast(Array, chunk)[:, place]
            yield rows
