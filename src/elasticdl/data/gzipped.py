"""Reading gzip-compressed files as a stream."""

from __future__ import annotations

import gzip
import zlib
from typing import IO, cast

from elasticdl.data.files import File
from elasticdl.errors import CorruptData, reason

__all__ = ["GzipStream", "is_gzipped", "open_stream"]


def is_gzipped(file: File) -> bool:
    return file.path.endswith(".gz")


class GzipStream:
    """What of a file object the scanners use; damage is said in our words."""

    def __init__(self, file: File) -> None:
        self._raw = file.open()
        self._gzip = gzip.GzipFile(fileobj=self._raw)
        self._url = file.url
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._gzip.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise CorruptData(
                f"{self._url}: cannot decompress past byte {self._position} of its content: {reason(e)}. "
                "The file is damaged: copy or write it again."
            ) from e
        self._position += len(data)
        return data

    def close(self) -> None:
        self._gzip.close()
        self._raw.close()

    def __enter__(self) -> GzipStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_stream(file: File) -> IO[bytes]:
    """The content of a file, decompressed if its name ends in .gz."""
    return cast(IO[bytes], GzipStream(file)) if is_gzipped(file) else file.open()
