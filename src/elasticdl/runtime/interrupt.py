"""Ctrl-C and SIGTERM: the first asks the loop to stop between two steps, the second stops at once.

SIGTERM is what a cluster sends to a process whose machine it wants back, so it is told apart: such a run is
`preempted` and the command ends with 143, one that Ctrl-C stopped is `interrupted` and ends with 130.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["Interrupt"]

GRACE_S = 2.0
"""How long a second signal waits for Python to hear it: it does not while TensorFlow waits for data."""

_kept: list[object] = []
"""What read the data of runs that were asked to stop. To let go of a reader that is stuck would wait for it for ever,
with the interpreter's lock held, so that not even another Ctrl-C would be heard."""


class Interrupt:
    """Inside it a signal is heard even while TensorFlow waits for data, which Python alone would not.

    While a model is loaded a signal is a KeyboardInterrupt, which has its number; from `listen` on the first sets a
    flag. Outside the main thread it does nothing.

    Args:
      is_cancelled: another way to be asked to stop, for who runs jobs in threads.
    """

    def __init__(self, is_cancelled: Callable[[], bool] | None = None) -> None:
        self._wishes = [] if is_cancelled is None else [is_cancelled]
        self._listens = False
        self._received: int | None = None
        self._at_once = False
        self._ended = threading.Event()
        self._reading: list[object] = []
        self._previous: dict[int, Any] = {}
        self._wakeup = (-1, -1)
        self._previous_wakeup = -1

    def is_set(self) -> bool:
        return self._received is not None or any(is_wished() for is_wished in self._wishes)

    def heed(self, is_wished: Callable[[], bool]) -> None:
        """Another way to be asked to stop: `elasticdl jobs stop`."""
        self._wishes.append(is_wished)

    @property
    def status(self) -> str:
        """What a run is that was asked to stop."""
        return "preempted" if self._received == signal.SIGTERM else "interrupted"

    def listen(self) -> None:
        """From now on a signal is a wish."""
        self._listens = True

    def keep(self, reading: object) -> None:
        """Do not let go of what reads data if this was asked to stop."""
        self._reading.append(reading)

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._wakeup = os.pipe()
        os.set_blocking(self._wakeup[1], False)
        threading.Thread(target=self._watch, args=(self._wakeup[0],), daemon=True).start()
        self._previous_wakeup = signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._received is not None:
            _kept.extend(self._reading)
        if not self._previous:
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wakeup)
        self._ended.set()
        os.close(self._wakeup[1])  # the watching thread sees the end and closes the other
        if self._at_once and isinstance(error, Exception):
            raise KeyboardInterrupt(self._received) from error  # what TensorFlow made of it

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._at_once = self._received is not None or not self._listens
        self._received = number
        if self._at_once:
            raise KeyboardInterrupt(number)

    def _watch(self, signals: int) -> None:
        """End the process at the second signal, when the main thread is stuck and cannot."""
        count = 0
        while received := os.read(signals, 64):
            numbers = [byte for byte in received if byte in (signal.SIGINT, signal.SIGTERM)]
            count += len(numbers)
            if count == 1 and not select.select([signals], [], [], GRACE_S)[0]:
                print(
                    "Stopping: waiting for the step that is being run, or for its data. Another Ctrl-C stops at once.",
                    file=sys.stderr,
                    flush=True,
                )
            if count >= 2 and not self._ended.wait(GRACE_S):
                print("Stopped while waiting for data.", file=sys.stderr, flush=True)
                os._exit(128 + numbers[-1])
        os.close(signals)
