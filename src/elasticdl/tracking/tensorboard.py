"""Events as TensorBoard curves."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elasticdl.errors import StorageFailure, reason

__all__ = ["TensorBoard"]

FLUSH_S = 5


class TensorBoard:
    """Writes the curves of `step`, `epoch` and `evaluation` events: train/loss, validation/accuracy, ..."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writers: dict[str, Any] = {}

    def receive(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "step":
            fields = {k: event[k] for k in ("loss", "examples_per_s") if event[k] is not None}
            self._write("train", event["step"], fields)
        elif event["event"] == "epoch":
            self._write("train", event["step"], _training_metrics(event))
        elif event["event"] == "evaluation":
            self._write("validation", event["step"], event["metrics"])

    def close(self) -> None:
        with self._storage_errors():
            for writer in self._writers.values():
                writer.close()

    def _write(self, run: str, step: int, values: Mapping[str, float]) -> None:
        if not values:
            return
        with self._storage_errors():
            if run not in self._writers:
                self._writers[run] = _EventFile(self._directory / run)
            self._writers[run].write(step, values)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """What is said when a disk is full or may not be written to, with the place."""
        try:
            yield
        except OSError as error:
            raise StorageFailure(
                f"Cannot write the curves to {self._directory}: {reason(error)}. Free some space there, or name "
                "another place with --tensorboard_log_dir."
            ) from error


class _EventFile:
    """A file of TensorBoard's, written without TensorFlow: who only tells of a training does not load it."""

    def __init__(self, directory: Path) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        directory.mkdir(parents=True, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}"
        self._file = (directory / name).open("ab")
        self._records = RecordWriter(self._file)
        self._flushed = now
        self._add(wall_time=now, file_version="brain.Event:2")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb

        now = time.time()
        for name, value in values.items():
            self._add(wall_time=now, step=step, summary=scalar_pb(name, value))
        if now - self._flushed > FLUSH_S:
            self._file.flush()
            self._flushed = now

    def _add(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._records.write(Event(**fields).SerializeToString())

    def close(self) -> None:
        self._file.close()


def _training_metrics(event: Mapping[str, Any]) -> dict[str, float]:
    """Those of an epoch's training; its loss has a curve of its own, by steps."""
    return {
        name: value
        for name, value in event.items()
        if isinstance(value, float) and name not in ("time", "loss") and not name.startswith("val_")
    }
