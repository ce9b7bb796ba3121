"""One write at a time, beside the training: what takes long on a disk or a network does not stop the steps."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

__all__ = ["Background"]

NICENESS = 19


class Background:
    """Runs tasks one after the other in a thread. What failed is raised by the next call."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def submit(self, task: Callable[[], None]) -> None:
        """Begin a task, once the one before it is done: no more than one copy waits in memory."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(task,), name="background")
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Until nothing is left to do."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise what went wrong, without waiting."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self, task: Callable[[], None]) -> None:
        # On Linux a thread has a niceness of its own: the training goes first.
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            task()
        except Exception as error:
            self._failure = error
