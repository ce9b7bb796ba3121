"""Ctrl-C and SIGTERM: the first asks the loop to stop between two steps, the second stops at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

__all__ = ["Interrupt"]

EXIT_CODE = 130
GRACE_S = 2.0
"""How long a second signal waits for Python to hear it: it does not while TensorFlow waits for data."""


class Interrupt:
    """From `listen` to its end the signals set a flag. Outside the main thread it does nothing.

    It is entered around everything and listens from the first step on: while a model is loaded a signal
    stops at once, as ever; and letting go of a reader that is stuck can be ended by a second one.
    """

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._ended = threading.Event()
        self._previous: dict[int, Any] = {}
        self._wakeup = (-1, -1)
        self._previous_wakeup = -1

    def is_set(self) -> bool:
        return self._flag.is_set()

    def __enter__(self) -> Interrupt:
        return self

    def listen(self) -> None:
        """From now on a signal is a wish."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._receive)
        self._wakeup = os.pipe()
        os.set_blocking(self._wakeup[1], False)
        self._previous_wakeup = signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(self._wakeup[0],), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        if not self._previous:
            return
        signal.set_wakeup_fd(self._previous_wakeup)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._ended.set()
        os.close(self._wakeup[1])  # the watching thread sees the end and closes the other

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._flag.is_set():
            raise KeyboardInterrupt
        self._flag.set()

    def _watch(self, signals: int) -> None:
        """End the process at the second signal, when the main thread is stuck and cannot."""
        count = 0
        while received := os.read(signals, 64):
            count += sum(byte in (signal.SIGINT, signal.SIGTERM) for byte in received)
            if count >= 2 and not self._ended.wait(GRACE_S):
                print("Stopped while waiting for data.", file=sys.stderr, flush=True)
                os._exit(EXIT_CODE)
        os.close(signals)
