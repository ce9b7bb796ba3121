"""Events as TensorBoard curves."""

from __future__ import annotations

import sys
import time
import types
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
        _keep_tensorflow_out()
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        with self._storage_errors():
            if run not in self._writers:
                self._writers[run] = EventFileWriter(str(self._directory / run), flush_secs=FLUSH_S)
            for name, value in values.items():
                event = Event(wall_time=time.time(), step=step, summary=scalar_pb(name, value))
                self._writers[run].add_event(event)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """What is said when a disk is full or may not be written to, with the place."""
        try:
            yield
        except Exception as error:
            raise StorageFailure(
                f"Cannot write the curves to {self._directory}: {reason(error)}. Free some space there, or name "
                "another place with --tensorboard_log_dir."
            ) from error


def _keep_tensorflow_out() -> None:
    """TensorBoard loads TensorFlow to write files, unless this module is there to say that it need not."""
    name = "tensorboard.compat.notf"
    sys.modules.setdefault(name, types.ModuleType(name))


def _training_metrics(event: Mapping[str, Any]) -> dict[str, float]:
    """Those of an epoch's training; its loss has a curve of its own, by steps."""
    return {
        name: value
        for name, value in event.items()
        if isinstance(value, float) and name not in ("time", "loss") and not name.startswith("val_")
    }
