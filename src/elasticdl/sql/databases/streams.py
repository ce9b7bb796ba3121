"""The one result that a connection has open: it streams, and makes room when the connection is wanted for more."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import IO

import pyarrow as pa

from elasticdl.sql.rows import Rows

__all__ = ["BATCH_ROWS", "Streams"]

BATCH_ROWS = 65_536


class Streams:
    """Holds the open result of a connection.

    A connection can do one thing at a time. When it is wanted while rows still come, the rest of them is
    put into a temporary file, from which they go on: whoever takes them sees no difference.
    """

    def __init__(self) -> None:
        self._open: _Stream | None = None
        self._taken: Callable[[], object | None] = lambda: None

    def open(
        self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], close: Callable[[], None]
    ) -> Rows:
        """The rows of a result that now occupies the connection; `close` gives it free."""
        stream = self._open = _Stream(schema, batches, close)
        taken = stream.batches()
        self._taken = weakref.ref(taken)
        return Rows(schema, taken, stream.close)

    def make_room(self) -> None:
        """Give the connection free."""
        stream, self._open = self._open, None
        if stream is None:
            return
        if self._taken() is None:  # nobody holds the rows any more
            stream.close()
        else:
            stream.spill()

    def drop(self) -> None:
        """Give the connection free; what was not taken is lost."""
        stream, self._open = self._open, None
        if stream is not None:
            stream.close()


class _Stream:
    def __init__(
        self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], close: Callable[[], None]
    ) -> None:
        self._schema, self._source, self._close = schema, batches, close
        self._live = True
        self._file: IO[bytes] | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := next(self._source, None)) is not None:
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)
        finally:
            self.close()

    def close(self) -> None:
        self._source = iter(())
        if self._live:
            self._live = False
            self._close()
        if self._file is not None:
            self._file.close()

    def spill(self) -> None:
        if not self._live:
            return
        file = tempfile.TemporaryFile(prefix="elasticdl-")  # noqa: SIM115 (lives as long as the rows)
        failure: Exception | None = None
        with pa.ipc.new_stream(file, self._schema) as writer:
            try:
                for batch in self._source:
                    writer.write_batch(batch)
            except Exception as error:
                failure = error  # for whoever takes the rows, not for whoever needs the connection
        self.close()
        self._file = file
        file.seek(0)
        self._source = _from_file(pa.ipc.open_stream(file), failure)


def _from_file(reader: pa.RecordBatchReader, failure: Exception | None) -> Iterator[pa.RecordBatch]:
    yield from reader
    if failure is not None:
        raise failure
