"""What a run tells: its events in a file, as curves, on the screen, and to whoever else listens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.artifacts.mirror import Mirror
from elasticdl.runtime.showing import show
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import EventFile, Events, EventSink
from elasticdl.tracking.tensorboard import TensorBoard

__all__ = ["Journal"]


class Journal:
    """Open from a run's begin to its end; the files may be at any address.

    Args:
      events: the file of the events, to which is appended.
      curves: the directory for TensorBoard.
      log_level: how much reaches the screen.
      listeners: makes more sinks, given the local file of the events.
    """

    def __init__(
        self,
        events: UPath,
        curves: UPath,
        log_level: str,
        listeners: Callable[[Path], Sequence[EventSink]] = lambda file: (),
    ) -> None:
        self._directory = events.parent
        self._mirror = Mirror()
        file = self._mirror.path(events)
        self.file = file
        self._events = Events(
            EventFile(file),
            TensorBoard(self._mirror.path(curves)),
            *make_progress(log_level),
            *listeners(file),
        )

    def emit(self, event: str, **fields: Any) -> None:
        self._events.emit(event, **fields)

    def __enter__(self) -> Journal:
        show(self._directory)
        return self

    def __exit__(self, *error: Any) -> None:
        with self._mirror, contextlib.closing(self._events):
            pass
