"""The old name of the command line: `python -m elasticdl.python.elasticdl.client train ...`."""

import sys

from elasticdl.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
