"""One client's request: its statements are run, and what they come to is sent while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from elasticdl.errors import RunError
from elasticdl.sql.outcome import Outcome
from elasticdl.sql.progress_lines import progress_lines
from elasticdl.sql.rows import Rows
from elasticdl.sql.server_cells import encode_rows
from elasticdl.sql.server_channel import Channel, NobodyListens
from elasticdl.sql.server_messages import messages

__all__ = ["OpenSession", "RunsText", "run_request"]

WAITING = 256
"""Responses that may wait for a client."""
ROWS_AT_ONCE = 1024


class RunsText(Protocol):
    """What the server needs of a session."""

    def run(self, text: str) -> Iterator[Outcome]: ...


class OpenSession(Protocol):
    """Opens a session for one request; `sql.session.Session` does."""

    def __call__(
        self,
        db: str | None,
        *,
        tell: Callable[[str], None],
        on_event: Callable[[Mapping[str, Any]], None],
        is_cancelled: Callable[[], bool],
    ) -> AbstractContextManager[RunsText]: ...


def run_request(
    text: str,
    db: str | None,
    open_session: OpenSession,
    on_gone: Callable[[Callable[[], None]], bool],
) -> Iterator[Any]:
    """The responses to a text of statements, one after the other.

    Args:
      on_gone: is given a function to be called when the client has gone; then the statements are cancelled. Returns
        False when it has gone already.
    """
    channel = Channel[Any](WAITING)
    if not on_gone(channel.leave):
        return
    threading.Thread(
        target=_run, args=(text, db, open_session, channel), name="sql-request", daemon=True
    ).start()
    try:
        yield from channel
    finally:
        channel.leave()


def _run(text: str, db: str | None, open_session: OpenSession, channel: Channel[Any]) -> None:
    sender = _Sender(channel)
    try:
        session = open_session(
            db,
            tell=sender.message,
            on_event=progress_lines(sender.message),
            is_cancelled=channel.has_left,
        )
        with session as opened:
            for outcome in opened.run(text):
                sender.outcome(outcome)
        sender.flush()
    except NobodyListens:
        channel.end()
    except Exception as error:
        channel.end(error)
    except (
        BaseException
    ) as error:  # `sys.exit()` in a model's file ends its statement, not the server
        channel.end(RunError(f"The statement's code ended it: {type(error).__name__}({error})."))
    else:
        channel.end()


class _Sender:
    """Puts responses in the order that SQLFlow's client can read.

    That client takes whatever follows a head for a row, so that it fails at an empty row set with anything after it.
    Therefore an empty one is held back: it ends the stream, or else it becomes a message. It also takes whatever
    follows the first of some messages for one more: what comes after a message is never anything else at once.
    """

    def __init__(self, channel: Channel[Any]) -> None:
        self._channel = channel
        self._made = messages()
        self._empty: tuple[list[str], Outcome] | None = None
        self._num_messages = 0

    def message(self, line: str) -> None:
        self._settle_empty()
        self._say(line)

    def outcome(self, outcome: Outcome) -> None:
        self._settle_empty()
        if outcome.message:
            self.message(outcome.message)
        if outcome.rows is not None and not self._rows(outcome.rows):
            self._empty = (outcome.rows.schema.names, outcome)
            return
        self._end(outcome)

    def flush(self) -> None:
        """The text has ended, and with it what may follow."""
        if self._empty is not None:
            self._put(head=self._made.Head(column_names=self._empty[0]))

    def _rows(self, rows: Rows) -> int:
        sent = 0
        with rows:
            for batch in rows:
                for part in _parts(batch):
                    if not sent:
                        self._put(head=self._made.Head(column_names=rows.schema.names))
                    sent += part.num_rows
                    for response in encode_rows(part):
                        self._channel.put(response)
        return sent

    def _settle_empty(self) -> None:
        if self._empty is None:
            return
        (names, outcome), self._empty = self._empty, None
        self._say(f"No rows. Columns: {', '.join(names)}.")
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        seconds = round(outcome.seconds)
        text = outcome.statement.text
        self._put(eoe=self._made.EndOfExecution(sql=text, spent_time_seconds=seconds))

    def _say(self, text: str) -> None:
        for line in text.splitlines() or [""]:
            self._num_messages += 1
            self._channel.put(self._made.Response(message=self._made.Message(message=line)))

    def _put(self, **field: Any) -> None:
        if self._num_messages == 1:
            self._say("")
        self._num_messages = 0
        self._channel.put(self._made.Response(**field))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Pieces whose cells, as Python objects, are small; none of an empty batch."""
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(start, ROWS_AT_ONCE)
