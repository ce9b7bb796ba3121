"""`python -m abstractions.evaluate --run_name R --data_dir D --project_root P`: evaluate what was exported."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from abstractions.train import main as train

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """The same as `elasticdl run --stage evaluate`."""
    args = list(sys.argv[1:] if argv is None else argv)
    return train(["--stage=evaluate", *args])


if __name__ == "__main__":
    sys.exit(main())
