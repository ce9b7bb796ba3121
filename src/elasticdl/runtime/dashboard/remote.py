"""Runs below a remote address, looked at in a thread of their own: one that does not answer keeps nobody waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from upath import UPath

from elasticdl.errors import ElasticDLError, reason
from elasticdl.runtime.dashboard.run import REMOTE_S, Clock, Run, Seen

__all__ = ["RemoteRoot"]

ANSWER_S = 3.0
"""So long a list of runs waits for an answer."""
PATIENCE_S = 15.0
"""One that has answered before may take so long until that is told."""


class RemoteRoot:
    """The runs of one address, as they were when it answered for the last time.

    Args:
      find: the runs that are there now; those that were known are the same objects.
    """

    def __init__(
        self, root: UPath, find: Callable[[UPath], tuple[Sequence[Run], str | None]], clock: Clock
    ) -> None:
        self.root, self._find = root, find
        self._runs: Sequence[Run] = ()
        self._problem: str | None = None
        self._has_answered = False
        self._seen = Seen(REMOTE_S, clock)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked = 0.0

    def look(self) -> tuple[Sequence[Run], str | None]:
        """The runs, and what is wrong; at once when it was asked before and has not answered since."""
        with self._lock:
            if (self._thread is None or not self._thread.is_alive()) and not self._seen.is_fresh():
                self._asked = time.monotonic()
                self._thread = threading.Thread(target=self._look, name="dashboard-remote")
                self._thread.daemon = True
                self._thread.start()
            thread, asked = self._thread, self._asked
        waited = time.monotonic() - asked
        if thread is not None:
            thread.join(max(0.0, ANSWER_S - waited))
        is_late = waited > PATIENCE_S or not self._has_answered
        if thread is not None and thread.is_alive() and is_late:
            return self._runs, f"{self.root} does not answer. Runs there are told of when it does."
        return self._runs, self._problem

    def _look(self) -> None:
        with self._seen.looking():
            try:
                runs, problem = self._find(self.root)
                for run in runs:
                    run.refresh()
                self._runs, self._problem = runs, problem
            except ElasticDLError as error:
                self._runs, self._problem = (), str(error)
            except Exception as error:  # a driver may raise anything
                self._runs, self._problem = (), f"Cannot read {self.root}: {reason(error)}."
            self._has_answered = True
