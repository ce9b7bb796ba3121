"""MLflow as the sender uses it: an experiment, runs, and what is logged to them. Imports mlflow.

Its own metrics, tags and files may all be sent again without harm: MLflow knows a metric by name, time, step
and value. What may not be made again is a run, so that each carries a key to be found by.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import getpass
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.storage import is_local, storage_errors
from elasticdl.tracking.mlflow_address import credentials, shown, sqlite_file
from elasticdl.tracking.mlflow_records import Record, batches, cut, mended, mended_names

__all__ = ["Store", "load_mlflow", "log_in"]

KEY_TAG = "elasticdl.key"
MAX_METRICS = 1000
_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")


def load_mlflow() -> None:
    """Load it, quiet and quick to give up."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    # A request that MLflow sends again by itself may make a second run. We send again ourselves.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with _no_collections():
        import mlflow.store.db.utils as database
        import mlflow.tracking.client  # noqa: F401

    # A database that is away is tried for minutes otherwise, and nobody is told.
    database.MAX_RETRY_COUNT = 1


def log_in(address: str) -> str:
    """Log in with what the address says.

    Returns the address to use: for a server without user and password, which then are in no message.
    """
    if not address.startswith(("http://", "https://")):
        return address
    user, password = credentials(address)
    if user:
        os.environ["MLFLOW_TRACKING_USERNAME"] = user
        os.environ["MLFLOW_TRACKING_PASSWORD"] = password
    return shown(address).rstrip("/")


class Store:
    """One address of MLflow."""

    def __init__(self, address: str) -> None:
        self._address = address
        with _no_collections(), _one_at_a_time(sqlite_file(address)):
            from mlflow.tracking import MlflowClient

            self._client: Any = MlflowClient(tracking_uri=address)

    def experiment(self, name: str) -> tuple[str, bool]:
        """Its number; and whether it had been deleted and is back."""
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                where = self._artifacts(name)
                return str(self._client.create_experiment(name, artifact_location=where)), False
            except MlflowException:
                found = self._client.get_experiment_by_name(name)  # somebody else made it just now
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
            return str(found.experiment_id), True
        return str(found.experiment_id), False

    def _artifacts(self, experiment: str) -> str | None:
        """Beside a sqlite database; elsewhere MLflow knows a place of its own."""
        database = sqlite_file(self._address)
        if database is None:
            return None
        folder = mended(experiment.replace("/", "_")).replace(":", "_")
        return (database.absolute().parent / "mlartifacts" / folder).as_uri()

    def make_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """A new run; or the one with this key that was made when no answer came."""
        key = tags[KEY_TAG]
        text = f"tags.`{KEY_TAG}` = '{key}'"
        if found := self._client.search_runs([experiment], text, max_results=1):
            return str(found[0].info.run_id)
        with contextlib.suppress(Exception):  # a machine without a name for this user
            tags = {"mlflow.user": getpass.getuser(), **tags}
        run = self._client.create_run(experiment, tags=dict(tags), run_name=name)
        return str(run.info.run_id)

    def is_active(self, run_id: str) -> bool:
        from mlflow.exceptions import MlflowException

        try:
            return bool(self._client.get_run(run_id).info.lifecycle_stage == "active")
        except MlflowException as error:
            if error.error_code in _GONE:
                return False
            raise

    def set_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Those that have changed since an earlier run become tags: MLflow changes no parameter."""
        from mlflow.entities import Param

        data = self._client.get_run(run_id).data
        values = map(cut, params.values())
        given = dict(zip(mended_names(params), values, strict=True))
        new = {name: value for name, value in given.items() if name not in data.params}
        for part in batches(new):
            self._client.log_batch(run_id, params=[Param(*item) for item in part.items()])
        changed = {
            f"changed.{name}"[:250]: value
            for name, value in given.items()
            if value != data.tags.get(f"changed.{name}"[:250], data.params.get(name, value))
        }
        self.set_tags(run_id, changed)

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        given = dict(zip(mended_names(tags), map(cut, tags.values()), strict=True))
        for part in batches(given):
            self._client.log_batch(run_id, tags=[RunTag(*item) for item in part.items()])

    def last_metrics(self, run_id: str) -> dict[str, float]:
        return dict(self._client.get_run(run_id).data.metrics)

    def log_metrics(self, run_id: str, records: Sequence[Record]) -> None:
        from mlflow.entities import Metric

        points = [
            Metric(name, value, record.time_ms, record.step)
            for record in records
            for name, value in record.metrics.items()
        ]
        for start in range(0, len(points), MAX_METRICS):
            self._client.log_batch(run_id, metrics=points[start : start + MAX_METRICS])

    def upload(self, run_id: str, source: UPath, folder: str) -> None:
        with _local(source) as path:
            if path.is_dir():
                self._client.log_artifacts(run_id, str(path), folder)
            else:
                self._client.log_artifact(run_id, str(path), folder)

    def set_status(self, run_id: str, status: str, time_ms: int) -> None:
        if status == "RUNNING":
            self._client.update_run(run_id, status=status)
        else:
            self._client.set_terminated(run_id, status=status, end_time=time_ms)

    def url(self, experiment: str, run_id: str) -> str | None:
        if not self._address.startswith(("http://", "https://")):
            return None
        return f"{self._address}/#/experiments/{experiment}/runs/{run_id}"


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """A fifth of the time that MLflow takes to load goes to looking for garbage that is not there."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _one_at_a_time(database: Path | None) -> Iterator[None]:
    """Two runs that make the tables of one new database get in each other's way."""
    if database is None:
        yield
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(database.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _local(source: UPath) -> Iterator[Path]:
    """The file or directory itself, or a copy of it for as long as it is needed."""
    if is_local(source):
        yield Path(str(source))
        return
    with tempfile.TemporaryDirectory(prefix="elasticdl-mlflow-") as directory:
        copy = Path(directory) / source.name
        with storage_errors(source, doing="read"):
            source.fs.get(source.path, str(copy), recursive=source.is_dir())
        yield copy
