"""A run's events as lines of text, for those who show them elsewhere than on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

from elasticdl.tracking.console import PlainProgress

__all__ = ["progress_lines"]


def progress_lines(tell: Callable[[str], None]) -> Callable[[Mapping[str, Any]], None]:
    """What takes events and tells a line for those that are worth one, as a log file has them."""
    return PlainProgress(cast("TextIO", _Lines(tell))).receive


class _Lines(io.TextIOBase):
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def write(self, text: str, /) -> int:
        if text.strip():
            self._tell(text.rstrip("\n"))
        return len(text)
