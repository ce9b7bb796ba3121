"""Events as TensorBoard curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["TensorBoard"]

FLUSH_S = 5


class TensorBoard:
    """Writes the curves of `step` and `evaluation` events: train/loss, validation/accuracy, ..."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writers: dict[str, Any] = {}

    def receive(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "step":
            fields = {k: event[k] for k in ("loss", "examples_per_s") if event[k] is not None}
            self._write("train", event["step"], fields)
        elif event["event"] == "evaluation":
            self._write("validation", event["step"], event["metrics"])

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def _write(self, run: str, step: int, values: Mapping[str, float]) -> None:
        import tensorflow as tf

        if run not in self._writers:
            self._writers[run] = tf.summary.create_file_writer(
                str(self._directory / run), flush_millis=1000 * FLUSH_S
            )
        with self._writers[run].as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
