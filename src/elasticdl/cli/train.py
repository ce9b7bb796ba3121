"""`elasticdl train`."""

from __future__ import annotations

from elasticdl.cli.options import job_command
from elasticdl.job.config import JobConfig

__all__ = ["train"]

EXAMPLE = """
\b
Example:
  elasticdl train --model_zoo=model_zoo \\
    --model_def=mnist_functional_api.mnist_functional_api.model \\
    --training_data=data/train --validation_data=data/test \\
    --num_epochs=2 --output=my_model
"""


@job_command("train", epilog=EXAMPLE)
def train(config: JobConfig) -> None:
    """Train a model."""
    from elasticdl.api import run

    run(config)
