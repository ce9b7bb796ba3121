"""Why workers were lost, and when it is no use to start another one."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from elasticdl.errors import RunError

__all__ = ["Losses", "why_lost"]

IN_A_ROW = 3
TAIL = 15
"""Lines of a worker's log that are shown."""

_CODE = re.compile(r"with an exit code (-?\d+)")
_SIGNAL = re.compile(r"^\*\*\* (SIG[A-Z]+) received", re.M)
_KILLED = "its process was killed or crashed"
_OOM_KILLED = re.compile(r"^oom_kill (\d+)$", re.M)


class Losses:
    """Counts losses; what is done in between shows that it is not hopeless.

    Args:
      logs: where workers write what they print.
      workers: how many there are to be.
      doing: what a worker is to have done.
      keeps_logs: whether the logs are there after the job.
    """

    def __init__(self, logs: Path, workers: int, doing: str, *, keeps_logs: bool) -> None:
        self._logs = logs
        self._limit = IN_A_ROW + workers
        self._doing = doing
        self._keeps_logs = keeps_logs
        self._in_a_row = 0
        self._done: Any = None
        self._oom_kills = _oom_kills()

    def went_on(self, done: Any) -> None:
        """How far the work is by now, as something that changes with it."""
        if done is not None and done != self._done:
            self._done, self._in_a_row = done, 0

    def why(self, index: int, error: Any) -> str:
        """Why a worker was lost, by what Ray says, and what there is of its last words."""
        reason = why_lost(error)
        if reason != _KILLED:
            return reason
        if crash := _SIGNAL.search("\n".join(self._tail(index))):
            return f"its process crashed ({crash[1]})"
        if _oom_kills() > self._oom_kills:
            self._oom_kills = _oom_kills()
            return "its process was killed, it seems since the machine was out of memory"
        return reason

    def lost(self, index: int, reason: str) -> None:
        """Raises when workers are lost again and again and nothing is done."""
        self._in_a_row += 1
        if self._in_a_row < self._limit:
            return
        where = f" What they printed is in {self._logs}." if self._keeps_logs else ""
        error = RunError(
            f"{self._in_a_row} workers in a row were lost before {self._doing}; the last one, worker-{index}: "
            f"{reason}.{where}"
        )
        if lines := self._tail(index):
            error.add_note("\n".join(["The end of its log:", *lines]))
        raise error

    def _tail(self, index: int) -> list[str]:
        with contextlib.suppress(OSError):
            log = self._logs / f"worker-{index}.log"
            return log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
        return []


def why_lost(error: Any) -> str:
    """Ray's words on the end of a process, in a few of ours.

    Of a process that SIGKILL or a crash ended Ray knows only that its connection is gone, and names what may have been.
    """
    import ray

    text = str(error)
    if isinstance(error, ray.exceptions.OutOfMemoryError) or "running low on memory" in text:
        return "out of memory: Ray ended it since its machine had none left"
    if isinstance(error, ray.exceptions.NodeDiedError) or "its node has died" in text:
        was = "taken back" if getattr(error, "preempted", False) else "lost"
        return f"its node was {was}"
    if "killed by `ray.kill`" in text:
        return "its process was ended by ray.kill"
    if "receives a SIGTERM" in text:
        return "its process was ended by SIGTERM"
    if code := _CODE.search(text):
        return f"its process ended with exit code {code[1]}"
    return _KILLED


def _oom_kills() -> int:
    """How many processes of this machine the kernel has killed since memory was full; 0 where nobody says."""
    with contextlib.suppress(OSError):
        if found := _OOM_KILLED.search(Path("/proc/vmstat").read_text(encoding="ascii")):
            return int(found[1])
    return 0
