"""Ctrl-C and SIGTERM: the first asks the loop to stop between two steps, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["Interrupt"]


class Interrupt:
    """While it is entered, the signals set a flag. Outside the main thread it does nothing."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._previous: dict[int, Any] = {}

    def is_set(self) -> bool:
        return self._flag.is_set()

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._flag.is_set():
            raise KeyboardInterrupt
        self._flag.set()
