"""Ctrl-C: the first asks the loop to stop between two steps, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["Interrupt"]


class Interrupt:
    """While it is entered, SIGINT sets a flag. Outside the main thread it does nothing."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._previous: Any = None

    def is_set(self) -> bool:
        return self._flag.is_set()

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._flag.is_set():
            raise KeyboardInterrupt
        self._flag.set()
