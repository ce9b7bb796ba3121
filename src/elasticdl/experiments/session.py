"""One sitting at an experiment: what is held and told from its first stage to its last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.artifacts.checkpoint import Checkpoints
from elasticdl.artifacts.experiment_directory import ExperimentDirectory
from elasticdl.artifacts.stored_model import find_trained_model, load_parameters
from elasticdl.artifacts.trained_model import PARAMETERS
from elasticdl.engine.best import Best
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import NotFound
from elasticdl.experiments.components import Components
from elasticdl.experiments.evaluation import evaluate
from elasticdl.experiments.exporting import best_of, export
from elasticdl.experiments.parts import Parts, check_fits, first_of
from elasticdl.experiments.project import Project
from elasticdl.experiments.training import Training
from elasticdl.experiments.workers import Workers
from elasticdl.reports.drawing import warm_up
from elasticdl.reports.section import Section
from elasticdl.reports.write import write_reports
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.journal import Journal
from elasticdl.tracking.events import EventSink, read_events
from elasticdl.tracking.mlflow import MlflowSender, MlflowSink

__all__ = ["Places", "Session"]

STOPPED = ("interrupted", "preempted")
PATIENCE_S = 2.0
"""How long who was asked to stop waits for MLflow; what it has not got by then it gets later."""


@dataclass(frozen=True)
class Places:
    """Where an experiment writes."""

    directory: ExperimentDirectory
    reports: UPath
    mlflow: str | None
    """MLflow's tracking address; None to tell it nothing."""


class Session:
    """Goes through stages of an experiment; afterwards its attributes say what came of it."""

    def __init__(
        self,
        project: Project,
        components: Components,
        places: Places,
        *,
        command: str,
        few: bool,
        overwrite: bool,
        log_level: str,
        interrupt: Interrupt,
        sender: MlflowSender | None,
        workers: Workers | None = None,
    ) -> None:
        self.status = "completed"
        self.steps = 0
        self.history: dict[str, list[float]] = {}
        self.metrics: dict[str, dict[str, float]] = {}
        self.exported: UPath | None = None
        self.facts: list[tuple[str, str]] = []
        self.project = project
        self.components = components
        self.config = components.config
        self.directory = places.directory
        self.few = few
        self.log_level = log_level
        self.interrupt = interrupt
        self.workers = workers
        self._places = places
        self._command = command
        self._overwrite = overwrite
        self._early: list[str] = []
        self._emit: Callable[..., None] | None = None
        self.parts = Parts(components, few=few, warn=self.warn, is_hurried=interrupt.is_set)
        self.store = Checkpoints(self.directory.checkpoints, keep=self.config.checkpoints_to_keep)
        self._sender = sender
        self._mlflow: MlflowSink | None = None
        self._training: Training | None = None
        self._best: Best | None = None
        self._model: TrainingModel | None = None

    def go(self, stages: Sequence[str]) -> None:
        """Do these stages, in their order."""
        with self.parts:
            self._go(stages)

    def _go(self, stages: Sequence[str]) -> None:
        trains = "train" in stages and (self._overwrite or not self.directory.is_exported)
        if trains:
            self._prepare(
                "evaluate" in stages
            )  # all that can be wrong is found before anything is written
        with (
            self.directory.kept(overwrite=self._overwrite),
            Journal(
                self.directory.events, self.directory.tensorboard, self.log_level, self._listeners
            ) as journal,
            self._telling(journal),
        ):
            self.interrupt.heed(self.directory.is_asked_to_stop)
            if trains:
                self._train(journal)
            elif "train" in stages:
                self.warn(
                    f"The model is exported already, so it is not trained: {self.directory.model}. "
                    "Begin anew with --overwrite."
                )
            if "export" in stages and self.status not in STOPPED:
                self._export(anew=trains or stages == ("export",))
            if "evaluate" in stages and self.status not in STOPPED:
                self._evaluate(journal)

    def warn(self, message: str) -> None:
        """Tell the user; what comes before there is somebody to tell it to is kept until then."""
        if self._emit is None:
            self._early.append(message)
        else:
            self._emit("warning", message=message)

    def tell(self, event: str, **fields: Any) -> None:
        assert self._emit is not None, "told before the journal is open"
        self._emit(event, **fields)

    @contextlib.contextmanager
    def _telling(self, journal: Journal) -> Iterator[None]:
        """From the first event to the last, whatever becomes of the stages."""
        self._emit = journal.emit
        if self._training is None:
            journal.emit("run_started", command=self._command, job=self.config.project_name)
        for message in self._early:
            self.warn(message)
        try:
            yield
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                journal.emit("run_ended", status="failed", error=f"{type(error).__name__}: {error}")
            raise
        journal.emit("run_ended", status=self.status, step=self.steps)
        if self._mlflow is not None and self.status in STOPPED:
            self._mlflow.patience_s = PATIENCE_S

    def _listeners(self, events: Path) -> list[EventSink]:
        if self._places.mlflow is None:
            return []
        version = self.project.code_version(self.config)
        named = {
            "project name": self.config.project_name,
            "run name": self.project.run_name,
            "code version": version.commit,
            "source hash": version.source_hash,
        }
        config = {f"config_{key}": value for key, value in self.config.flat().items()}
        self._mlflow = MlflowSink(
            self.directory.path,
            events,
            self._places.mlflow,
            experiment=self.config.project_name,
            run_name=self.project.run_name,
            params=config | named,
            tags={"code dirty": str(version.dirty).lower()},
            warn=self.warn,
            sender=self._sender,
        )
        return [self._mlflow]

    def _prepare(self, evaluates: bool) -> None:
        self._training = Training(self)
        if evaluates:  # what would be found after the last epoch is found before the first
            self.components.evaluation_functions()
            self.components.validation_index(self.parts.validation.num_points)
            check_fits(self._training.model, self.parts.reported("test"))

    def _train(self, journal: Journal) -> None:
        assert self._training is not None
        training = self._training
        warm_up()
        training.run(journal)
        self.status = training.status
        self.steps = training.steps
        self.history = training.history
        self._best, self._model = training.best, training.model

    def _export(self, *, anew: bool) -> None:
        if not anew and self.directory.is_exported:
            self.exported = self.directory.model
            return
        if self._best is None:
            self._best = best_of(self)
        self.exported = export(self, self._best)

    @property
    def model(self) -> TrainingModel:
        """The model, with the weights of its training or yet without."""
        if self._model is None:
            self._model = self.parts.trained_on(
                first_of(self.parts.validation), "validation", trains=False
            )
        return self._model

    def _load_exported(self) -> None:
        stored = find_trained_model(str(self.directory.model)).fetch(PARAMETERS)
        self.model.load(load_parameters(stored), only_model=True)

    def _section(self, name: str) -> Section | None:
        """What the report says of a part of the data; None when it was interrupted."""
        return evaluate(self, name)

    def _evaluate(self, journal: Journal) -> None:
        if not self.directory.is_exported:
            raise NotFound(
                f"There is nothing to evaluate: {self.directory.model} does not exist. Train and export first."
            )
        self.exported = self.directory.model
        self._load_exported()
        sections = []
        for name in ("validation", "test"):
            section = self._section(name)
            if section is None:
                self.status = self.interrupt.status
                return
            sections.append(section)
            self.metrics[name] = section.numbers()
        reports = write_reports(
            self.directory.path,
            self._places.reports,
            project=self.config.project_name,
            run=self.project.run_name,
            config=self.config.to_dict(),
            events=read_events(journal.file),
            sections=sections,
            warn=self.warn,
        )
        for section in sections:
            files = [str(path) for path in reports.files(section.name)]
            if section.name == "validation":
                files += [str(path) for path in (reports.page, *reports.curves) if path is not None]
            journal.emit(
                "report",
                name=section.name,
                points=len(section.table) if section.table is not None else 0,
                metrics=section.numbers(),
                files=files,
            )
            if tables := reports.tables.get(section.name):
                self.facts.append((f"{section.name} report", str(tables[0])))
        if reports.page is not None:
            self.facts.append(("report", str(reports.page)))
