"""Files as sources: a file at any fsspec address, and a source made of one reader a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Protocol, TypeVar

from elasticdl.data.source import Chunk, Metadata, Shard, Structure
from elasticdl.errors import (
    DataError,
    InvalidValue,
    NotFound,
    StorageFailure,
    UnknownName,
    nearest,
    reason,
)

__all__ = ["File", "FileSource", "ShardReader", "check_range", "for_each"]

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class File:
    """One file. It holds no handle: a range is read by opening, reading and closing."""

    fs: Any
    path: str
    """What the file system calls it."""
    url: str
    """What users call it; the name of its shard."""
    size: int

    def read(self, start: int, end: int) -> bytes:
        """The bytes [start, end); safe from several threads."""
        with _storage_errors(self.url):
            data: bytes = self.fs.cat_file(self.path, start=start, end=end)
            return data

    def open(self) -> IO[bytes]:
        with _storage_errors(self.url):
            handle: IO[bytes] = self.fs.open(self.path, "rb")
            return handle


class ShardReader(Protocol):
    """One shard of one file."""

    @property
    def num_records(self) -> int: ...

    @property
    def sequential(self) -> bool: ...

    def read(self, start: int, end: int) -> Iterator[Chunk]: ...


class FileSource:
    """A source of shard readers; shards without records are left out."""

    def __init__(
        self,
        readers: Sequence[tuple[str, ShardReader]],
        structure: Structure,
        metadata: Metadata | None = None,
    ) -> None:
        self._readers = {name: reader for name, reader in readers if reader.num_records}
        self._shards = tuple(
            Shard(name, reader.num_records, reader.sequential)
            for name, reader in self._readers.items()
        )
        self._by_name = {shard.name: shard for shard in self._shards}
        self._structure = structure
        self._metadata = metadata or Metadata()
        if not self._shards:
            names = [name for name, _ in readers]
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            raise DataError(f"There are no records in {shown}. Give data that holds some.")

    @property
    def shards(self) -> Sequence[Shard]:
        return self._shards

    @property
    def structure(self) -> Structure:
        return self._structure

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    def read(self, shard: str, start: int, end: int) -> Iterator[Chunk]:
        check_range(self._by_name, shard, start, end)
        if start == end:
            return iter(())
        return self._readers[shard].read(start, end)


def check_range(shards: dict[str, Shard], name: str, start: int, end: int) -> Shard:
    """The shard of that name, if the range lies inside of it."""
    if name not in shards:
        raise UnknownName(f"Unknown shard {name!r}. {nearest(name, shards)}")
    if not 0 <= start <= end <= shards[name].num_records:
        raise InvalidValue(
            f"Invalid range [{start}, {end}) of shard {name!r}: it holds "
            f"{shards[name].num_records} records."
        )
    return shards[name]


def for_each(files: Sequence[File], function: Callable[[File], _Result]) -> list[_Result]:
    """Call a function on every file, several at a time: opening far-away files is all waiting."""
    if len(files) == 1:
        return [function(files[0])]
    with ThreadPoolExecutor(max_workers=8, thread_name_prefix="open-data") as pool:
        return list(pool.map(function, files))


@contextmanager
def _storage_errors(url: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as e:
        raise NotFound(f"{url} is gone: it was there when the data was listed.") from e
    except OSError as e:
        raise StorageFailure(
            f"Cannot read {url}: {reason(e)}. Check its permissions and the disk."
        ) from e
