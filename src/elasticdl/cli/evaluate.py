"""`elasticdl evaluate`."""

from __future__ import annotations

from elasticdl.cli.options import job_command
from elasticdl.job.config import JobConfig

__all__ = ["evaluate"]

EXAMPLE = """
\b
Example:
  elasticdl evaluate --trained_model=my_model --data=data/test
"""


@job_command("evaluate", epilog=EXAMPLE)
def evaluate(config: JobConfig) -> None:
    """Evaluate a trained model on data."""
    from elasticdl.api import run

    run(config)
