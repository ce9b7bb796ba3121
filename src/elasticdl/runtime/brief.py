"""What a command tells that leaves no run directory behind: an evaluation, a prediction.

Where somebody looks at the runs of this process, there is a directory for as long as it takes, with what a page needs.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import StorageFailure
from elasticdl.job.config import JobConfig
from elasticdl.runtime.showing import is_shown, show
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import TRANSIENT, EventFile, Events, EventSink

__all__ = ["telling"]

EVERY_S = 0.5
"""How often progress is written down, which elsewhere is only shown."""


@contextlib.contextmanager
def telling(config: JobConfig) -> Iterator[Callable[..., None]]:
    """Tells the screen of events, and a page where there is one."""
    with contextlib.ExitStack() as stack:
        events = Events(*make_progress(config.log_level), *_written(config, stack))
        stack.callback(events.close)
        yield events.emit


def _written(config: JobConfig, stack: contextlib.ExitStack) -> list[EventSink]:
    if not is_shown():
        return []
    try:
        aside = tempfile.TemporaryDirectory(prefix="elasticdl-page-", ignore_cleanup_errors=True)
        name = (config.job_name or config.command).replace("/", "-")
        directory = RunDirectory(Path(stack.enter_context(aside), name))
        stack.enter_context(directory.held(resume=False, job=config.to_json()))
        sink = _Progress(Path(str(directory.events)))
    except OSError:  # no room for a page is no reason to do nothing else
        return []
    show(directory.path, is_lasting=False)
    return [sink]


class _Progress:
    """Writes events down, those of progress too, now and then."""

    def __init__(self, file: Path) -> None:
        self._file = EventFile(file, leaves_out=())
        self._last = 0.0

    def receive(self, event: Mapping[str, Any]) -> None:
        if event["event"] in TRANSIENT:
            is_last = "total" in event and event.get("records") == event["total"]
            if time.monotonic() - self._last < EVERY_S and not is_last:
                return
            self._last = time.monotonic()
        with contextlib.suppress(StorageFailure):
            self._file.receive(event)

    def close(self) -> None:
        self._file.close()
