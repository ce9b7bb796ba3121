"""Whoever shows the runs of this process is told of each one that begins: the command line, which has a page for them.

Runs know nothing of pages. Nobody is told, and nothing costs anything, where nobody shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from upath import UPath

__all__ = ["Show", "is_shown", "show", "showing"]

Show = Callable[[UPath], None]
"""Is told the run directory. It never raises."""

_shows: list[Show] = []


@contextmanager
def showing(show: Show) -> Iterator[None]:
    """Inside, the runs of this process are shown."""
    _shows.append(show)
    try:
        yield
    finally:
        _shows.remove(show)


def is_shown() -> bool:
    """Whether somebody looks at what this process runs."""
    return bool(_shows)


def show(directory: UPath) -> None:
    """A run begins in this directory."""
    for one in _shows:
        one(directory)
