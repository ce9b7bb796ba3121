"""Why workers were lost, and when it is no use to start another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import RunError

__all__ = ["Losses", "why_lost"]

IN_A_ROW = 5
TAIL = 15
"""Lines of a worker's log that are shown."""


class Losses:
    """Counts losses; a step in between shows that it is not hopeless."""

    def __init__(self, directory: RunDirectory, workers: int) -> None:
        self._directory = directory
        self._limit = IN_A_ROW + 2 * workers
        self._in_a_row = 0
        self._step = -1

    def heard(self, event: Mapping[str, Any]) -> None:
        step = event.get("step")
        if isinstance(step, int) and step != self._step:
            self._step, self._in_a_row = step, 0

    def lost(self, index: int, reason: str) -> None:
        """Raises when workers are lost again and again and no step is taken."""
        self._in_a_row += 1
        if self._in_a_row < self._limit:
            return
        log = Path(str(self._directory.path), "logs", f"worker-{index}.log")
        error = RunError(
            f"{self._in_a_row} workers in a row were lost before a step was taken; the last one, worker-{index}: "
            f"{reason}. What they printed is in {log.parent}."
        )
        if log.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            error.add_note("\n".join(["The end of its log:", *lines[-TAIL:]]))
        raise error


def why_lost(error: Any) -> str:
    """Ray's words on the end of a process, in a few of ours."""
    import ray

    text = str(error)
    if isinstance(error, ray.exceptions.OutOfMemoryError) or (
        "due to high memory usage" in text and "Ray" in text
    ):
        return "out of memory: Ray ended it since its machine had none left"
    if "node" in text and ("died" in text or "dead" in text or "terminated" in text):
        return "its node was lost"
    return "its process was killed or crashed"
