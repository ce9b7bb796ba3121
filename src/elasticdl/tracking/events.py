"""`events.jsonl`: the record of a run, one JSON object a line, a public format.

Every line has `time` (seconds since the epoch) and `event`; the rest depends on the event and is
documented in docs/reference/events.md. All that people see of a run (progress, TensorBoard, the summary) is
made of these events.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from elasticdl.errors import StorageFailure

__all__ = ["TRANSIENT", "EventFile", "EventSink", "Events", "read_events"]

TRANSIENT = {"progress", "evaluation_progress", "prediction_progress", "waiting"}
"""Shown while they happen and not written down: the file stays small."""


class EventSink(Protocol):
    """Something that is told of every event."""

    def receive(self, event: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class Events:
    """Tells every sink of every event."""

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = list(sinks)
        self._lock = threading.Lock()  # what is written in the background tells of its end

    def emit(self, event: str, **fields: Any) -> None:
        with self._lock:
            record = {"time": round(time.time(), 3), "event": event, **fields}
            for sink in self._sinks:
                sink.receive(record)

    def close(self) -> None:
        """The last first: it may still have something to tell. Each of them, also when one fails."""
        with contextlib.ExitStack() as stack:
            for sink in self._sinks:
                stack.callback(sink.close)


class EventFile:
    """Appends events to a file, each line whole and at once visible to readers."""

    def __init__(self, path: Path, *, leaves_out: Collection[str] = TRANSIENT) -> None:
        self._path = path
        self._leaves_out = leaves_out
        is_torn = _is_torn(path)
        self._file = path.open("a", encoding="utf-8")
        if is_torn:  # by a crash; what comes now stands in a line of its own
            self._file.write("\n")

    def receive(self, event: Mapping[str, Any]) -> None:
        if event["event"] in self._leaves_out:
            return
        line = json.dumps(_plain(event), separators=(",", ":"), allow_nan=False)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise StorageFailure(
                error.errno, f"Cannot write {self._path}: {error.strerror}. Free some space there."
            ) from error

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be flushed was reported then
            self._file.close()


def _is_torn(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # there is none, or it is empty
        return False


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a run; a last line that was cut short by a crash is left out."""
    events: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def _plain(value: Any) -> Any:
    """JSON has no NaN and no numpy: not-a-number becomes null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool) or value is None:
        return value
    if hasattr(value, "item"):
        return _plain(value.item())
    return str(value)
