"""Events as TensorBoard curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elasticdl.errors import StorageFailure

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
        import tensorflow as tf

        if not values:
            return
        with self._storage_errors():
            if run not in self._writers:
                self._writers[run] = tf.summary.create_file_writer(
                    str(self._directory / run), flush_millis=1000 * FLUSH_S
                )
            with self._writers[run].as_default(step):
                for name, value in values.items():
                    tf.summary.scalar(name, value)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """What TensorFlow says when a disk is full or may not be written to, with the place."""
        import tensorflow as tf

        try:
            yield
        except tf.errors.OpError as error:
            what = str(error.message).rsplit(";", 1)[-1].strip().splitlines()[0]
            raise StorageFailure(
                f"Cannot write the curves to {self._directory}: {what}. Free some space there, or name "
                "another place with --tensorboard_log_dir."
            ) from error


def _training_metrics(event: Mapping[str, Any]) -> dict[str, float]:
    """Those of an epoch's training; its loss has a curve of its own, by steps."""
    return {
        name: value
        for name, value in event.items()
        if isinstance(value, float) and name not in ("time", "loss") and not name.startswith("val_")
    }
