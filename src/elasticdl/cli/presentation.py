"""What a command tells the showing of errors about itself."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Presentation"]


@dataclass
class Presentation:
    """Made for one run of the command line; a command fills it in as soon as it knows."""

    full_traceback: bool = False
    """Everything, our frames too: `--log_level=DEBUG`."""
    model_zoo: str | None = None
    """Files below it are the user's, wherever it is."""
