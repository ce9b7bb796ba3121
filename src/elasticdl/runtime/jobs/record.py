"""What a run directory says of its run, at any address, also when half of it is written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import ElasticDLError
from elasticdl.storage import is_local, storage_errors

__all__ = ["described", "events_of", "is_run", "parsed"]


def is_run(directory: RunDirectory) -> bool:
    """Whether it is a run's directory. That of an experiment has no job.json, one that just begins no events."""
    with storage_errors(directory.path, doing="read"):
        if not is_local(directory.path):
            directory.path.fs.invalidate_cache()
        return bool(directory.job.exists() or directory.events.exists())


def described(directory: RunDirectory) -> dict[str, Any]:
    """What was asked for; nothing when that is not told, or cannot be understood."""
    with contextlib.suppress(ValueError):
        job = json.loads(_text(directory, directory.job.name))
        if isinstance(job, dict):
            return job
    return {}


def events_of(directory: RunDirectory) -> list[dict[str, Any]]:
    """What the run has told so far; nothing when there is nothing yet."""
    return parsed(_text(directory, directory.events.name).splitlines())


def parsed(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The events of these lines. One that is being written, or was cut short, is left out."""
    events = []
    for line in lines:
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                events.append(event)
    return events


def _text(directory: RunDirectory, name: str) -> str:
    file = directory.path / name
    if not is_local(file):
        file.fs.invalidate_cache()
    try:
        with storage_errors(file, doing="read"):
            return str(file.read_text(encoding="utf-8", errors="replace"))
    except ElasticDLError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ""
        raise
