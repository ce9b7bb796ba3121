"""A user's own reader as a source.

`custom_data_reader(data_origin, records_per_task=None, **kwargs)` makes it: any object with
`create_shards()` and `read_records(task)`. `AbstractDataReader` is a base for those who want one.
"""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from elasticdl.data.chunks import MAX_RECORDS, structure_of
from elasticdl.data.files import check_range
from elasticdl.data.readers.stack import stack
from elasticdl.data.source import Chunk, Metadata, Shard, Structure
from elasticdl.errors import ContractError, DataError, reason

__all__ = ["AbstractDataReader", "CustomSource", "Task", "open_custom"]

_ADVICE = "Write it as custom_data_reader(data_origin, records_per_task=None, **kwargs)."


@dataclass(frozen=True)
class Task:
    """What `read_records` is asked for: the records [start, end) of a shard."""

    shard_name: Any
    start: int
    end: int


class AbstractDataReader(ABC):
    """Base of a user's reader.

    A record is bytes unless `records_output_types` says otherwise: a TensorFlow dtype, or a tuple
    or dict of them in the form of one record.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    @abstractmethod
    def read_records(self, task: Task) -> Iterator[Any]:
        """Yield the records `task.start` to `task.end` of shard `task.shard_name`."""

    @abstractmethod
    def create_shards(self) -> Mapping[Any, tuple[int, int]]:
        """Each shard's first record and number of records, by name."""

    @property
    def records_output_types(self) -> Any:
        """The type of a record; None is bytes."""
        return None

    @property
    def metadata(self) -> Any:
        """Handed to `dataset_fn(dataset, mode, metadata)`; its `column_names` name the columns."""
        return Metadata()


def open_custom(
    function: Callable[..., Any],
    data_origin: Any,
    params: Mapping[str, Any],
    records_per_task: int | None = None,
) -> CustomSource:
    """Make the user's reader and the source of it."""
    if not callable(function):
        raise ContractError(f"custom_data_reader is {function!r}. {_ADVICE}")
    signature = inspect.signature(function)
    accepted = signature.parameters.values()
    by_name = {p.name for p in accepted} | {"*" for p in accepted if p.kind is p.VAR_KEYWORD}
    given = dict(params)
    if by_name & {"records_per_task", "*"}:
        given.setdefault("records_per_task", records_per_task)
    if "*" not in by_name and (unknown := sorted(set(given) - by_name)):
        raise ContractError(
            f"custom_data_reader takes no parameter {unknown[0]!r}. Leave it out of the reader's "
            f"parameters, or add it: custom_data_reader(data_origin, {unknown[0]}=None, **kwargs)."
        )
    origin, named = (
        ((), {"data_origin": data_origin}) if _by_name(signature) else ((data_origin,), {})
    )
    try:
        bound = signature.bind(*origin, **named, **given)
    except TypeError as e:
        raise ContractError(
            f"custom_data_reader{signature} cannot be called with the data's origin: {reason(e)}. {_ADVICE}"
        ) from e
    return CustomSource(function(*bound.args, **bound.kwargs))


def _by_name(signature: inspect.Signature) -> bool:
    """Whether the origin goes in by its name: a parameter has it, or none takes it by place."""
    own = signature.parameters.get("data_origin")
    if own is not None and own.kind in (own.POSITIONAL_OR_KEYWORD, own.KEYWORD_ONLY):
        return True
    return not any(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
        for p in signature.parameters.values()
    )


class CustomSource:
    """Reads through the user's reader, whose code never runs in two threads at once."""

    def __init__(self, reader: Any) -> None:
        for method in ("create_shards", "read_records"):
            if not callable(getattr(reader, method, None)):
                raise ContractError(
                    f"custom_data_reader returned a value of type {type(reader).__name__} without a "
                    f"method {method!r}. Return an object with create_shards() and read_records(task)."
                )
        self._reader = reader
        self._lock = threading.RLock()
        self._origins: dict[str, tuple[Any, int]] = {}
        self._by_name: dict[str, Shard] = {}
        for name, (start, num_records) in _checked_shards(reader.create_shards()):
            self._origins[str(name)] = (name, start)
            self._by_name[str(name)] = Shard(str(name), num_records)
        if not self._by_name:
            raise DataError("create_shards() of the data reader names no records.")

    @property
    def shards(self) -> Sequence[Shard]:
        return tuple(self._by_name.values())

    @property
    def metadata(self) -> Metadata:
        """The reader's own object, if it has one: `dataset_fn` may know more of it than we do."""
        own: Metadata | None = getattr(self._reader, "metadata", None)
        return Metadata() if own is None else own

    @cached_property
    def structure(self) -> Structure:
        """The form of the first record; the reader is asked for it once."""
        shard = self.shards[0]
        return structure_of(next(iter(self.read(shard.name, 0, 1))))

    def read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        check_range(self._by_name, shard, start, end)
        return self._read(shard, start, end)

    def _read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        name, offset = self._origins[shard]
        task = Task(name, offset + start, offset + end)
        with self._lock:
            records = iter(self._reader.read_records(task))
        wanted = end - start
        while True:
            with self._lock:
                batch = list(islice(records, MAX_RECORDS))
            if not batch:
                break
            wanted -= len(batch)
            if wanted < 0:
                raise self._miscounted(task, "more")
            yield stack(batch, self._output_types, shard)
        if wanted:
            raise self._miscounted(task, f"{end - start - wanted}")

    @cached_property
    def _output_types(self) -> Any:
        return getattr(self._reader, "records_output_types", None)

    def _miscounted(self, task: Task, got: str) -> DataError:
        return DataError(
            f"read_records was asked for the {task.end - task.start} records [{task.start}, "
            f"{task.end}) of shard {task.shard_name!r} and yielded {got}. Yield exactly these."
        )


def _checked_shards(shards: Any) -> Iterator[tuple[Any, tuple[int, int]]]:
    if not isinstance(shards, Mapping):
        raise ContractError(
            f"create_shards() returned {shards!r}. Return {{name: (first, number of records)}}."
        )
    for name, value in shards.items():
        try:
            start, num_records = (int(number) for number in value)
        except (TypeError, ValueError):
            raise ContractError(
                f"create_shards() gives {value!r} for {name!r}. Give (first, number of records)."
            ) from None
        if start < 0 or num_records < 0:
            raise ContractError(f"create_shards() gives the negative {value!r} for {name!r}.")
        if num_records:
            yield name, (start, num_records)
