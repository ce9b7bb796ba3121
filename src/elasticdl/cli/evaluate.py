"""`elasticdl evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elasticdl.cli.options import job_command
from elasticdl.job.config import JobConfig

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["evaluate"]

EXAMPLE = """
\b
Example:
  elasticdl evaluate --trained_model=my_model --data=model_zoo/data/digits/test
"""


@job_command("evaluate", epilog=EXAMPLE)
def evaluate(config: JobConfig) -> Result:
    """Evaluate a trained model on data."""
    from elasticdl.api import run

    return run(config)
