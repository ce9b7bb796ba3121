"""`elasticdl predict`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elasticdl.cli.options import job_command
from elasticdl.job.config import JobConfig

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["predict"]

EXAMPLE = """
\b
Example:
  elasticdl predict --trained_model=my_model --data=model_zoo/data/digits/test \\
    --output=digits.parquet
"""


@job_command("predict", epilog=EXAMPLE)
def predict(config: JobConfig) -> Result:
    """Predict with a trained model."""
    from elasticdl.api import run

    return run(config)
