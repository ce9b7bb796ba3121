"""Writing records into RecordIO shards that appear all at once."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import tempfile
import uuid
from types import TracebackType
from typing import IO, Any

from fsspec.implementations.local import LocalFileSystem

from elasticdl.data.recordio import COMPRESSIONS, RecordWriter
from elasticdl.errors import InvalidValue, OutputExists, StorageFailure, nearest, reason
from elasticdl.storage import file_system

__all__ = ["ShardWriter"]


class ShardWriter:
    """Writes shards under hidden names and gives them their own when `commit` is called.

    For a remote directory they are written here and put there at the end: its files have no rename.
    The names say how many shards there are, so a reader notices when some are not there. Leaving the
    `with` without a commit removes what was written.
    """

    def __init__(self, directory: str, records_per_shard: int, compression: str) -> None:
        if compression not in COMPRESSIONS:
            raise InvalidValue(
                f"Invalid compression {compression!r}. {nearest(compression, COMPRESSIONS)}"
            )
        self._fs, self._directory = file_system(directory)
        self._spool = self._directory
        if not isinstance(self._fs, LocalFileSystem):
            self._spool = tempfile.mkdtemp(prefix="elasticdl-shards-")
        self._url = directory
        self._records_per_shard = records_per_shard
        self._compression = compression
        self._stem = f".data-{uuid.uuid4().hex[:8]}"
        self._pending: list[str] = []
        self._file: IO[bytes] | None = None
        self._writer: RecordWriter | None = None
        self._committed = False
        self.num_records = 0

    def __enter__(self) -> ShardWriter:
        self._created = not self._fs.exists(self._directory)
        if not self._created and (found := _shards_in(self._fs, self._directory)):
            raise OutputExists(
                f"{self._url} already holds shards, {found[0]} for one. Give another directory, or "
                "remove them first."
            )
        with _storage_errors(self._url):
            self._fs.makedirs(self._directory, exist_ok=True)
        return self

    def write(self, record: bytes) -> None:
        with _storage_errors(self._url):
            if self._writer is None:
                self._begin()
            assert self._writer is not None
            self._writer.write(record)
            self.num_records += 1
            if self._writer.num_records == self._records_per_shard:
                self._end()

    def commit(self) -> tuple[str, ...]:
        """Name the shards; their addresses."""
        with _storage_errors(self._url):
            self._end()
            total = len(self._pending)
            named = []
            for number, path in enumerate(self._pending):
                name = f"data-{number:05}-of-{total:05}.recordio"
                target = posixpath.join(self._directory, name)
                if self._spool == self._directory:
                    os.rename(path, target)
                else:
                    self._fs.put_file(path, target)
                named.append(posixpath.join(self._url, name))
            self._pending, self._committed = [], True
            return tuple(named)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
        for path in self._pending:
            with contextlib.suppress(OSError):
                os.unlink(path)
        if self._spool != self._directory:
            shutil.rmtree(self._spool, ignore_errors=True)
        if self._created and not self._committed:
            with contextlib.suppress(OSError):
                self._fs.rmdir(self._directory)

    def _begin(self) -> None:
        path = os.path.join(self._spool, f"{self._stem}-{len(self._pending):05}")
        self._pending.append(path)
        self._file = open(path, "wb")  # noqa: SIM115
        self._writer = RecordWriter(self._file, self._compression)

    def _end(self) -> None:
        if self._writer is None or self._file is None:
            return
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = self._writer = None


def _shards_in(fs: Any, directory: str) -> list[str]:
    names = sorted(posixpath.basename(str(path)) for path in fs.ls(directory, detail=False))
    return [name for name in names if name.startswith("data-") and name.endswith(".recordio")]


@contextlib.contextmanager
def _storage_errors(url: str) -> Any:
    try:
        yield
    except OSError as e:
        raise StorageFailure(
            f"Cannot write to {url}: {reason(e)}. Check its space and permissions."
        ) from e
