"""A look into data: its format, its shards, its first records in a form to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np

from elasticdl.data.chunks import count, cut
from elasticdl.data.paths import expand
from elasticdl.data.registry import format_of, open_source
from elasticdl.data.source import Array, Chunk, Shard, Source
from elasticdl.quiet import load_tensorflow

__all__ = ["Inspection", "inspect"]

_MAX_SHOWN = 80
_MAX_VALUES = 8
_ESCAPES = {"\r": "\\r", "\n": "\\n", "\t": "\\t"}


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
    source = open_source(path, params, look=True)
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
        return {name: _value(cast(Array, array)[0]) for name, array in record.items()}
    value = cast(Array, record)[0]
    if isinstance(value, bytes):
        return _example(value) or _value(value)
    names = source.metadata.column_names or ()
    return {name: _value(field) for name, field in zip(names, value, strict=True)}


def _value(value: Any) -> Any:
    """A value as something short that prints well."""
    if isinstance(value, bytes | str):
        return _text(value if isinstance(value, bytes) else value.encode(errors="replace"))
    if isinstance(value, list | np.ndarray):
        return _values(list(value))
    if isinstance(value, Mapping):
        return {name: _value(inner) for name, inner in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _text(value: bytes) -> str:
    """Text as it is, its line ends and tabs as escapes; other bytes as Python writes them."""
    try:
        shown = value.decode()
    except UnicodeDecodeError:
        shown = repr(value)
    for char, escape in _ESCAPES.items():
        shown = shown.replace(char, escape)
    if not shown.isprintable():
        shown = repr(value)
    if len(shown) <= _MAX_SHOWN:
        return shown
    return f"{shown[: _MAX_SHOWN - 3]}... ({len(value)} bytes)"


def _values(values: Sequence[Any]) -> Any:
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
        name: _feature(list(getattr(features[name], kind).value)) if kind else None
        for name, kind in sorted(kinds.items())
    }


def _feature(values: Sequence[Any]) -> Any:
    """An Example has lists only: one of one value stands for the value."""
    return _value(values[0]) if len(values) == 1 else _values(values)
