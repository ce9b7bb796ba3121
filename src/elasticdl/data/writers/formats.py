"""Which writer writes what: by the name of a format, or by the end of a file's name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol

from numpy.typing import NDArray

from elasticdl.data.source import ArraySpec

__all__ = ["FORMATS", "Columns", "Schema", "Writer", "WriterFormat", "by_suffix"]

Columns = Mapping[str, NDArray[Any] | list[Any]]
"""Rows by the names of their columns: an array, or a list of nested lists where shapes vary."""
Schema = Mapping[str, ArraySpec]


class Writer(Protocol):
    """Writes rows into one open file."""

    def write(self, columns: Columns) -> None: ...

    def close(self) -> None:
        """Write what is left; the file itself stays open."""


Open = Callable[[IO[bytes], Schema], Writer]
Join = Callable[[Iterable[IO[bytes]], IO[bytes]], None]


@dataclass(frozen=True)
class WriterFormat:
    """A format: how its files end, and where its writer is."""

    name: str
    suffixes: tuple[str, ...]
    module: str

    @property
    def suffix(self) -> str:
        """The one that is written."""
        return self.suffixes[0]

    def open(self, file: IO[bytes], schema: Schema) -> Writer:
        opener: Open = getattr(importlib.import_module(self.module), f"{self.name}_writer")
        return opener(file, schema)

    def join(self, parts: Iterable[IO[bytes]], file: IO[bytes]) -> None:
        """Put whole files of this format together into one."""
        joiner: Join = getattr(importlib.import_module(self.module), f"join_{self.name}")
        joiner(parts, file)


_HERE = "elasticdl.data.writers"
_KNOWN = (
    WriterFormat("parquet", (".parquet",), f"{_HERE}.parquet"),
    WriterFormat("csv", (".csv",), f"{_HERE}.text"),
    WriterFormat("jsonl", (".jsonl", ".json"), f"{_HERE}.text"),
    WriterFormat("recordio", (".recordio",), f"{_HERE}.records"),
    WriterFormat("tfrecord", (".tfrecord",), f"{_HERE}.records"),
)
FORMATS: Mapping[str, WriterFormat] = {format_.name: format_ for format_ in _KNOWN}


def by_suffix(suffix: str) -> WriterFormat | None:
    """The format of files that end so, capital letters aside."""
    return next((f for f in _KNOWN if suffix.lower() in f.suffixes), None)
