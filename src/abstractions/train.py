"""`python -m abstractions.train --run_name R --data_dir D --project_root P`: train, export, evaluate."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """The same as `elasticdl run`, with EVAL_REPORTS_DIR and MLFLOW_TRACKING_URI of the environment."""
    from elasticdl.cli.main import main as elasticdl

    args = list(sys.argv[1:] if argv is None else argv)
    return elasticdl(["run", *args, *from_environment(args)])


def from_environment(args: Sequence[str]) -> list[str]:
    """What an option that was not given gets of the environment."""
    flags = {
        "--eval_reports_dir": "EVAL_REPORTS_DIR"
    }  # MLflow's own variable is read where it is used
    given = {arg.partition("=")[0].replace("-", "_").replace("__", "--", 1) for arg in args}
    return [
        f"{flag}={value}"
        for flag, variable in flags.items()
        if flag not in given and (value := os.environ.get(variable))
    ]


if __name__ == "__main__":
    sys.exit(main())
