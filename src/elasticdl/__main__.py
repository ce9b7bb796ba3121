"""`python -m elasticdl`."""

import sys

from elasticdl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
