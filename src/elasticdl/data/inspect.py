"""A look into data: its format, its shards, its first records in a form to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from elasticdl.data.chunks import count, cut
from elasticdl.data.paths import expand
from elasticdl.data.registry import format_of, open_source
from elasticdl.data.source import Chunk, Shard, Source
from elasticdl.quiet import load_tensorflow

__all__ = ["Inspection", "inspect"]

_MAX_SHOWN = 80
_MAX_VALUES = 8


@dataclass(frozen=True)
class Inspection:
    """What is in some data. A record is a dict where it has named values, else one string."""

    format: str
    shards: tuple[Shard, ...]
    num_records: int
    num_bytes: int
    records: tuple[dict[str, Any] | str, ...]


def inspect(
    path: str, reader_params: Mapping[str, Any] | None = None, num_records: int = 3
) -> Inspection:
    """Look into the data at a path; see `paths.expand` for what a path may be."""
    params = dict(reader_params or {})
    files = expand(path)
    format_ = format_of(files, params.get("reader_type"))
    source = open_source(path, params)
    shards = tuple(source.shards)
    return Inspection(
        format=format_.name,
        shards=shards,
        num_records=sum(shard.num_records for shard in shards),
        num_bytes=sum(file.size for file in files),
        records=tuple(_describe(source, record) for record in islice(_first(source), num_records)),
    )


def _first(source: Source) -> Iterator[Chunk]:
    """Chunks of one record each."""
    for shard in source.shards:
        for chunk in source.read(shard.name, 0, shard.num_records):
            yield from (cut(chunk, i, i + 1) for i in range(count(chunk)))


def _describe(source: Source, record: Chunk) -> dict[str, Any] | str:
    if isinstance(record, Mapping):
        return {name: _value(array[0]) for name, array in record.items()}
    assert not isinstance(record, tuple)
    value = record[0]
    if isinstance(value, bytes):
        return _example(value) or _value(value)
    names = source.metadata.column_names or ()
    return {name: _value(field) for name, field in zip(names, value, strict=True)}


def _value(value: Any) -> Any:
    """A value as something short that prints well."""
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = repr(value)
        shown = text if text.isprintable() else repr(value)
        return (
            shown
            if len(shown) <= _MAX_SHOWN
            else f"{shown[: _MAX_SHOWN - 3]}... ({len(value)} bytes)"
        )
    if isinstance(value, np.ndarray):
        return _values(value.tolist())
    return value.item() if isinstance(value, np.generic) else value


def _values(values: list[Any]) -> Any:
    if len(values) == 1:
        return _value(values[0])
    shown = [_value(value) for value in values[:_MAX_VALUES]]
    return shown if len(values) <= _MAX_VALUES else [*shown, f"... ({len(values)} values)"]


def _example(record: bytes) -> dict[str, Any] | None:
    """The features of a `tf.train.Example`, if the bytes are one."""
    load_tensorflow()
    import tensorflow as tf
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        example = tf.train.Example.FromString(record)
    except DecodeError:
        return None
    features = example.features.feature
    # Unknown fields parse as well: only what writes back to as many bytes was an Example.
    if not features or example.ByteSize() != len(record):
        return None
    kinds = {name: feature.WhichOneof("kind") for name, feature in features.items()}
    return {
        name: _values(list(getattr(features[name], kind).value)) if kind else None
        for name, kind in sorted(kinds.items())
    }
