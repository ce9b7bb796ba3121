"""An experiment from its config to its report: train, export, evaluate; each can be done alone.

    Experiment("my_project", "baseline", data_dir="data").run()

What is there already is not done again: a training that was cut off goes on, and one whose model is exported is not
begun. All of it trains through `engine.trainer`, in one run directory, with one file of events.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from upath import UPath

from elasticdl.artifacts.experiment_directory import ExperimentDirectory
from elasticdl.errors import InvalidValue
from elasticdl.experiments.components import Components, load_components
from elasticdl.experiments.config import load_config
from elasticdl.experiments.estimator_session import EstimatorSession
from elasticdl.experiments.project import Project
from elasticdl.experiments.session import Places, Session
from elasticdl.experiments.workers import Workers
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.result import Result
from elasticdl.storage import is_local, place
from elasticdl.tracking.mlflow import MlflowSender, checked_address, default_tracking_uri
from elasticdl.tracking.mlflow_address import shown

__all__ = ["Experiment"]

REPORTS = "eval_reports"


class Experiment:
    """One run of a project. Making it reads and checks the config, and nothing else.

    Args:
      project_root: the directory that holds `runs/` and the sources.
      run_name: the directory of the run in `runs/`.
      data_dir: the data, instead of what the config says.
      runs_dir: where run directories are, here or at an fsspec address; `<project_root>/runs` by default.
      eval_reports_dir: where `<project>/<run>/eval_report.csv` goes; `<project_root>/eval_reports` by default.
      mlflow_tracking_uri: MLflow's store or server; MLFLOW_TRACKING_URI, or a database in the project, by default.
      mlflow: whether MLflow is told of it at all.
      overrides: `section.key=value`, each in the place of what the config says.
      fast_dev_run: go through everything with two minibatches, in a directory that is thrown away.
      overwrite: begin anew, whatever the run has already.
      log_level: how much is shown while it runs.
      num_workers: how many processes train, `3` or `"2:4"`; this one alone by default.
      distribution_strategy: `AllreduceStrategy` to train on Ray with one worker too.
      ray_address: a Ray cluster: `auto`, `ray://host:port` or `host:port`; a Ray of its own by default.
      worker_timeout: the seconds after which a worker that does not answer is expelled.
      worker_resource_request: what each worker asks of the cluster, `cpu=1,memory=4096Mi`.
    """

    def __init__(
        self,
        project_root: str | os.PathLike[str],
        run_name: str,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        runs_dir: str | os.PathLike[str] | None = None,
        eval_reports_dir: str | os.PathLike[str] | None = None,
        mlflow_tracking_uri: str | os.PathLike[str] | None = None,
        mlflow: bool = True,
        overrides: Sequence[str] = (),
        fast_dev_run: bool = False,
        overwrite: bool = False,
        log_level: str = "INFO",
        num_workers: int | str | None = None,
        distribution_strategy: str | None = None,
        ray_address: str | None = None,
        worker_timeout: float | None = None,
        worker_resource_request: str | None = None,
    ) -> None:
        cluster = {
            "num_workers": num_workers,
            "distribution_strategy": distribution_strategy,
            "ray_address": ray_address,
            "worker_timeout": worker_timeout,
            "worker_resource_request": worker_resource_request,
        }
        self._workers = Workers.parse(cluster)
        self.project = Project.open(project_root, run_name, runs_dir)
        self.config = load_config(self.project.config_file, overrides)
        self._data_dir = None if data_dir is None else str(data_dir)
        self._overrides = tuple(overrides)
        self._given = {
            "data_dir": data_dir,
            "runs_dir": runs_dir,
            "eval_reports_dir": eval_reports_dir,
            "mlflow_tracking_uri": shown(str(mlflow_tracking_uri)) if mlflow_tracking_uri else None,
            **cluster,
        }
        uri = str(mlflow_tracking_uri or default_tracking_uri(self.project.root))
        self.places = Places(
            directory=ExperimentDirectory(self.project.run_directory),
            reports=_absolute(eval_reports_dir or self.project.root / REPORTS),
            mlflow=checked_address(uri) if mlflow else None,
        )
        self._few = fast_dev_run
        self._overwrite = overwrite
        self._log_level = log_level

    def run(self) -> Result:
        """Train, export and evaluate."""
        return self._go("run", "train", "export", "evaluate")

    def train(self) -> Result:
        """Train, from the start or from where it was cut off; nothing when the model is exported."""
        return self._go("train", "train")

    def export(self) -> Result:
        """Export the best epoch of what was trained."""
        self._refuse_overwriting("export")
        return self._go("export", "export")

    def evaluate(self) -> Result:
        """Evaluate what was exported on the validation and the test data."""
        self._refuse_overwriting("evaluate")
        return self._go("evaluate", "evaluate")

    def check(self) -> Result:
        """Find what is wrong without training: the classes, a minibatch in the model, the export metric."""
        from elasticdl.experiments.check import check

        began = time.monotonic()
        facts = check(self._load())
        return Result(
            command="check",
            status="all is well",
            seconds=time.monotonic() - began,
            facts=tuple(facts),
            next_steps=(("run it", self._command()),),
        )

    def _refuse_overwriting(self, stage: str) -> None:
        if self._overwrite:
            raise InvalidValue(
                f"--overwrite begins a training anew and removes what there is, so there would be nothing to {stage}. "
                "Leave it out: this stage writes its output anew in any case."
            )

    def _load(self) -> Components:
        load_tensorflow()
        return load_components(self.project, self.config, self._data_dir)

    def _go(self, command: str, *stages: str) -> Result:
        began = time.monotonic()
        with self._somewhere() as places, Interrupt() as interrupt, self._sending() as sender:
            components = self._load()
            if components.is_generic and self._workers is not None:
                raise InvalidValue(
                    "Invalid --num_workers: the model is not Keras', and its builder fits it by itself, in one "
                    "process. Leave it out."
                )
            make = EstimatorSession if components.is_generic else Session
            session = make(
                self.project,
                components,
                places,
                command=command,
                few=self._few,
                overwrite=self._overwrite,
                log_level=self._log_level,
                interrupt=interrupt,
                sender=sender,
                workers=self._workers,
            )
            session.go(stages)
        return Result(
            command=command,
            status=session.status,
            steps=session.steps,
            history=session.history,
            metrics=session.metrics.get("validation", {}),
            test_metrics=session.metrics.get("test", {}),
            output=None if self._few else places.directory.path,
            model_path=None if self._few else session.exported,
            seconds=time.monotonic() - began,
            facts=() if self._few else tuple(session.facts),
            next_steps=self._next_steps(session),
        )

    @contextlib.contextmanager
    def _somewhere(self) -> Iterator[Places]:
        """Where the run writes: for a trial run, to a directory that is removed."""
        if not self._few:
            yield self.places
            return
        with tempfile.TemporaryDirectory(prefix="elasticdl-trial-") as made:
            here = Path(made)
            yield Places(
                directory=ExperimentDirectory(here / self.project.run_name),
                reports=place(here / REPORTS),
                mlflow=f"sqlite:///{here}/mlflow.db" if self.places.mlflow else None,
            )

    @contextlib.contextmanager
    def _sending(self) -> Iterator[MlflowSender | None]:
        """MLflow loads while TensorFlow does, and not in the first epochs' way."""
        if self.places.mlflow is None:
            yield None
            return
        sender = MlflowSender()
        try:
            yield sender
        finally:
            sender.end_unused()

    def _next_steps(self, session: Session) -> tuple[tuple[str, str], ...]:
        if self._few:
            return (("run it in earnest", self._command()),)
        if session.status in ("interrupted", "preempted"):
            return (("go on", self._command()),)
        steps = [
            ("see the curves", f"tensorboard --logdir={_quoted(self.places.directory.tensorboard)}")
        ]
        if (self.places.mlflow or "").startswith("sqlite:"):
            store = f"mlflow ui --backend-store-uri {_quoted(self.places.mlflow)}"
            steps.append(("compare runs", store))
        if session.exported is None:
            steps.append(("export and evaluate it", self._command()))
        else:
            model = f"--trained_model={_quoted(session.exported)}"
            steps.append(("predict with it", f"elasticdl predict {model} --output=predictions.csv"))
        return tuple(steps)

    def _command(self) -> str:
        """What the user types to go on with this run."""
        words = ["elasticdl run", f"--run_name={shlex.quote(self.project.run_name)}"]
        if self.project.root != Path.cwd():
            words.append(f"--project_root={_quoted(self.project.root)}")
        for name, value in self._given.items():
            if value is not None:
                words.append(f"--{name}={shlex.quote(str(value))}")
        words += [f"--set {shlex.quote(override)}" for override in self._overrides]
        if self.places.mlflow is None:
            words.append("--no_mlflow")
        return " ".join(words)


def _absolute(path: str | os.PathLike[str]) -> UPath:
    where = place(path)
    return place(os.path.abspath(str(where))) if is_local(where) else where


def _quoted(path: object) -> str:
    """As short as it can be from here."""
    text = str(path)
    with contextlib.suppress(ValueError):
        text = str(Path(text).relative_to(Path.cwd())) if os.path.isabs(text) else text
    return shlex.quote(text)
