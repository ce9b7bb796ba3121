"""The run directory of an experiment: `runs/<run_name>/`, which holds the user's config too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from upath import UPath

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.artifacts.trained_model import MESSAGE
from elasticdl.storage import children, remove, storage_errors

__all__ = ["ESTIMATOR", "ExperimentDirectory"]

ESTIMATOR = "model.skops"
"""The export of a model that is not Keras'."""

_OURS = (
    "checkpoints",
    "logs",
    "exported",
    "plots",
    "events.jsonl",
    "job.json",
    "master.jsonl",
    "report.html",
    "run_id.txt",
    "mlflow.json",
)
_REPORTS = "validation_report"


class ExperimentDirectory(RunDirectory):
    """Paths under the names that the `abstractions` engine gave them."""

    @property
    def tensorboard(self) -> UPath:
        return self.path / "logs"

    @property
    def model(self) -> UPath:
        return self.path / "exported"

    @property
    def is_exported(self) -> bool:
        """Whether there is an export with all its files."""
        with storage_errors(self.path, doing="read"):
            if (self.model / ESTIMATOR).is_file():
                return True
            if not (self.model / MESSAGE).is_file():
                return False
        return not find_trained_model(str(self.model)).missing

    @contextmanager
    def kept(self, *, overwrite: bool) -> Iterator[None]:
        """Hold the directory for this process; with `overwrite` empty it of all but the user's files."""
        with self.held(resume=True, job={}):
            if overwrite:
                self._clear()
            yield

    def _clear(self) -> None:
        for child in children(self.path):
            if child.name in _OURS or child.name.startswith(_REPORTS):
                remove(child)
