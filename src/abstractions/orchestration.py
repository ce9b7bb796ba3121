"""`Orchestrator`: train, export and evaluate a run of a project."""

from __future__ import annotations

import os
from typing import Any

from elasticdl.runtime.result import Result

__all__ = ["Orchestrator"]


class Orchestrator:
    """Runs an experiment whose config is `<project_root>/runs/<run_name>/config.yaml`.

    Args:
      run_name: the name of the run.
      data_dir: the data; the config's `data_dir` by default.
      project_root: the project's directory; the working directory by default.
      eval_reports_dir: where the reports on test data go; `<project_root>/eval_reports` by default.
      mlflow_tracking_uri: the MLflow server or database; a database in the project by default.
      **options: those of `elasticdl run` by their names: `runs_dir`, `mlflow`, `overrides`,
        `fast_dev_run`, `overwrite`, `log_level`, `num_workers`, `distribution_strategy`, `ray_address`,
        `worker_timeout`.

    Example:
      >>> Orchestrator("baseline", data_dir="data").run()                      # doctest: +SKIP
    """

    def __init__(
        self,
        run_name: str,
        data_dir: str | os.PathLike[str] | None = None,
        project_root: str | os.PathLike[str] | None = None,
        eval_reports_dir: str | os.PathLike[str] | None = None,
        mlflow_tracking_uri: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        from elasticdl.experiments.stages import Experiment

        self.experiment = Experiment(
            project_root if project_root is not None else os.getcwd(),
            run_name,
            data_dir=_text(data_dir),
            eval_reports_dir=_text(eval_reports_dir),
            mlflow_tracking_uri=_text(mlflow_tracking_uri),
            **options,
        )

    def run(self) -> Result:
        """Train, export and evaluate. What was done before is not done again."""
        return self.experiment.run()

    def train(self) -> Result:
        """Train, or go on with a training that was stopped."""
        return self.experiment.train()

    def export(self) -> Result:
        """Export the best epoch."""
        return self.experiment.export()

    def evaluate(self) -> Result:
        """Evaluate the exported model, and write the reports."""
        return self.experiment.evaluate()


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else str(path)
