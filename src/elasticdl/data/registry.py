"""Which reader reads what: by `reader_type`, else by the end of the file's name."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elasticdl.data.files import File, for_each
from elasticdl.data.paths import expand
from elasticdl.data.sniff import check_content
from elasticdl.data.source import Source
from elasticdl.errors import DataError, InvalidValue, UnknownName, nearest

__all__ = ["FORMATS", "Format", "format_of", "open_source"]


@dataclass(frozen=True)
class Format:
    """A format: its name, where its reader is, and the file names that are taken for it."""

    name: str
    reader: str
    pattern: str
    look: str = ""
    """Where the reader for a look is, if it is another: it reads what cannot be trained on."""

    def load(self, *, look: bool = False) -> Callable[..., Source]:
        module, _, function = ((look and self.look) or self.reader).partition(":")
        opener: Callable[..., Source] = getattr(importlib.import_module(module), function)
        return opener


_READERS = "elasticdl.data.readers"
_RECORDIO = Format("RecordIO", f"{_READERS}.recordio:open_recordio", r"\.(recordio|rec)$")
_KNOWN = (
    _RECORDIO,
    Format("CSV", f"{_READERS}.csv:open_csv", r"\.(csv|tsv)(\.gz)?$"),
    Format("TFRecord", f"{_READERS}.tfrecord:open_tfrecord", r"\.tfrecords?(-\d+-of-\d+)?(\.gz)?$"),
    Format("Arrow", f"{_READERS}.arrow:open_arrow", r"\.(arrow|feather|ipc)$"),
    Format(
        "Parquet",
        f"{_READERS}.parquet:open_parquet",
        r"\.(parquet|pq)$",
        look=f"{_READERS}.parquet:look_into_parquet",
    ),
)
FORMATS: Mapping[str, Format] = {format_.name.lower(): format_ for format_ in _KNOWN}


def open_source(
    data: Any,
    reader_params: Mapping[str, Any] | None = None,
    custom_reader: Callable[..., Any] | None = None,
    records_per_task: int | None = None,
    *,
    look: bool = False,
    offers: Mapping[str, Any] | None = None,
) -> Source:
    """The source of some data.

    Args:
        data: a path (see `paths.expand`) or a list of them; or arrays, a DataFrame, or a `Source`.
        reader_params: `reader_type` and the reader's own parameters.
        custom_reader: the user's `custom_data_reader`; it gets `data` and the parameters.
        records_per_task: handed to the custom reader.
        look: to show the records, not to train on them.
        offers: parameters for a reader of files that has such, below those in `reader_params`.

    Raises:
        NotFound: there is nothing at the path.
        DataError: there are no records, or they are not what they should be.
    """
    params = dict(reader_params or {})
    if custom_reader is not None:
        from elasticdl.data.readers.custom import open_custom

        return open_custom(custom_reader, data, params, records_per_task)
    paths = _paths(data)
    if paths is None:
        return _open_object(data, params)
    files = list({file.url: file for path in paths for file in expand(path)}.values())
    format_ = format_of(files, params.pop("reader_type", None))
    opener = format_.load(look=look)
    known = _check_params(format_, opener, params)
    offered = {name: value for name, value in (offers or {}).items() if name in known}
    for_each(files, lambda file: check_content(file, format_.name))
    return opener(files, **{**offered, **params})


def format_of(files: Sequence[File], reader_type: str | None = None) -> Format:
    """The one format of some files.

    Raises:
        UnknownName: there is no such `reader_type`.
        DataError: the names of the files are of several formats.
    """
    if reader_type is not None:
        name = str(reader_type).lower()
        if name not in FORMATS:
            raise UnknownName(f"Unknown reader_type {reader_type!r}. {nearest(name, FORMATS)}")
        return FORMATS[name]
    first_of: dict[str, File] = {}
    for file in files:
        first_of.setdefault(_by_name(file).name, file)
    if len(first_of) > 1:
        found = ", ".join(f"{name} ({file.url})" for name, file in first_of.items())
        raise DataError(
            f"The data is of several formats: {found}. Give the files of one, for example with a "
            "glob such as dir/*.csv, or name the format with reader_type."
        )
    return FORMATS[next(iter(first_of)).lower()]


def _by_name(file: File) -> Format:
    fitting = (f for f in _KNOWN if re.search(f.pattern, file.path, re.IGNORECASE))
    return next(fitting, _RECORDIO)


def _check_params(
    format_: Format, opener: Callable[..., Source], params: Mapping[str, Any]
) -> list[str]:
    """The names of the parameters that a reader has."""
    parameters = inspect.signature(opener).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for name in params:
        if name not in known:
            raise UnknownName(
                f"The {format_.name} reader has no parameter {name!r}. "
                f"{nearest(name, [*known, 'reader_type'])}"
            )
    return known


def _paths(data: Any) -> list[str] | None:
    if isinstance(data, str | os.PathLike):
        return [os.fspath(data)]
    if isinstance(data, list) and data and all(isinstance(p, str | os.PathLike) for p in data):
        return [os.fspath(p) for p in data]
    return None


def _open_object(data: Any, params: Mapping[str, Any]) -> Source:
    if params:
        raise InvalidValue(
            f"The reader's parameters {dict(params)!r} have no meaning for data in memory. "
            "Leave them out."
        )
    if data is None:
        raise InvalidValue("No data was given. Give a path, arrays, or a Source.")
    if hasattr(data, "shards") and hasattr(data, "read"):
        source: Source = data
        return source
    from elasticdl.data.readers.arrays import ArraySource

    return ArraySource(data)
