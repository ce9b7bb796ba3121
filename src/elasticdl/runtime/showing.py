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

_shows: list[tuple[Show, bool]] = []


@contextmanager
def showing(show: Show, *, only_lasting: bool = False) -> Iterator[None]:
    """Inside, the runs of this process are shown; or only those whose directory stays."""
    _shows.append((show, only_lasting))
    try:
        yield
    finally:
        _shows.pop()


def is_shown() -> bool:
    """Whether somebody looks also at runs whose directory does not stay."""
    return any(not only_lasting for _, only_lasting in _shows)


def show(directory: UPath, *, is_lasting: bool = True) -> None:
    """A run begins in this directory."""
    for one, only_lasting in _shows:
        if is_lasting or not only_lasting:
            one(directory)
