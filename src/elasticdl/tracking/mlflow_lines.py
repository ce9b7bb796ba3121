"""events.jsonl as the sender reads it: lines that are whole, while they are being written."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from elasticdl.tracking.mlflow_records import Epochs, Record, record_of

__all__ = ["Lines", "Part"]


@dataclass(frozen=True)
class Part:
    """What is sent at once, and the number of lines that are done with it."""

    records: Sequence[Record]
    num_lines: int


class Lines:
    """The events of a run so far, and what MLflow is to be told of each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._epochs = Epochs()
        self._records: list[Record | None] = []
        self.first_event = ""
        self.is_open = False
        """Whether a run has started that has not said how it ended."""

    def __len__(self) -> int:
        return len(self._records)

    def read(self) -> None:
        """Read on. A line that cannot be read counts, and says nothing."""
        if self._file is None and not self._open():
            return
        assert self._file is not None
        while (line := self._file.readline()).endswith(b"\n"):
            event = _parsed(line)
            self._records.append(self._record(event) if event else None)
        self._file.seek(-len(line), os.SEEK_CUR)  # the rest of this line is still to be written

    def part(self, start: int) -> Part:
        """Epochs that follow each other together, anything else by itself."""
        epochs: list[Record] = []
        for number in range(start, len(self)):
            record = self._records[number]
            if record is None:
                continue
            if record.is_epoch:
                epochs.append(record)
            elif epochs:
                return Part(epochs, number)
            else:
                return Part([record], number + 1)
        return Part(epochs, len(self))

    def _open(self) -> bool:
        if not self._path.exists():
            return False
        self._file = self._path.open("rb")
        with contextlib.suppress(OSError):  # a file system without locks
            # The sender of a run that was killed may still be at it.
            fcntl.flock(self._file, fcntl.LOCK_EX)
        return True

    def _record(self, event: Mapping[str, Any]) -> Record | None:
        self.first_event = self.first_event or str(event.get("time"))
        if event.get("event") in ("run_started", "run_ended"):
            self.is_open = event["event"] == "run_started"
        return record_of(event) if self._epochs.is_news(event) else None


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
