"""`TFKerasTrainer`: the training of one run directory, without the evaluation."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from abstractions.orchestration import Orchestrator
from elasticdl.runtime.result import Result

__all__ = ["GenericTrainer", "TFKerasTrainer", "Trainer"]

EXPORTED = "exported"


class TFKerasTrainer:
    """Trains and exports the run of a run directory.

    Args:
      config: the run's config, or None; its `data_dir` is used. The rest is read from the run directory,
        so that what was trained is what is written there.
      run_dir: `<project_root>/runs/<run_name>`.

    Example:
      >>> trainer = TFKerasTrainer(config, "runs/baseline")                    # doctest: +SKIP
      >>> if not trainer.check_for_exported():                                 # doctest: +SKIP
      ...     trainer.train()
      ...     trainer.export()
    """

    def __init__(self, config: Any, run_dir: str | os.PathLike[str], **options: Any) -> None:
        self.config = config
        self.run_dir = pathlib.Path(os.path.abspath(run_dir))
        self.exported_dir = self.run_dir / EXPORTED
        self._options = options

    def train(self, data_dir: str | os.PathLike[str] | None = None) -> Result:
        """Train, or go on with a training that was stopped."""
        return self._orchestrator(data_dir).train()

    def export(self, data_dir: str | os.PathLike[str] | None = None) -> Result:
        """Export the best epoch into `exported/`."""
        return self._orchestrator(data_dir).export()

    def check_for_exported(self) -> bool:
        """Whether the run has an exported model."""
        return self.exported_dir.is_dir() and any(self.exported_dir.iterdir())

    def _orchestrator(self, data_dir: str | os.PathLike[str] | None) -> Orchestrator:
        own = getattr(self.config, "data_dir", None) if self.config is not None else None
        return Orchestrator(
            self.run_dir.name,
            data_dir=data_dir if data_dir is not None else own,
            project_root=self.run_dir.parent.parent,
            runs_dir=str(self.run_dir.parent),
            **self._options,
        )


Trainer = TFKerasTrainer


class GenericTrainer(TFKerasTrainer):
    """The same for a `GenericModelBuilderBase`: the config's class decides which it is."""
