"""`elasticdl train`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elasticdl.cli.options import job_command
from elasticdl.job.config import JobConfig

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["train"]

EXAMPLE = """
\b
Example:
  elasticdl train --model_zoo=model_zoo \\
    --model_def=mnist.mnist_functional.custom_model \\
    --training_data=model_zoo/data/digits/train \\
    --validation_data=model_zoo/data/digits/test \\
    --num_epochs=3 --output=my_model
"""


@job_command("train", epilog=EXAMPLE)
def train(config: JobConfig) -> Result:
    """Train a model."""
    from elasticdl.api import run

    return run(config)
