"""The directories that a command is told to look for runs in."""

from __future__ import annotations

from collections.abc import Sequence

from elasticdl.errors import InvalidValue, NotFound

__all__ = ["check_places"]


def check_places(places: Sequence[str]) -> None:
    """What is misspelled is told at once; a directory that vanishes later is told where runs are shown.

    Raises:
      NotFound: there is nothing.
      InvalidValue: it is no directory.
    """
    from elasticdl.storage import place, storage_errors

    for given in places:
        where = place(given)
        with storage_errors(where, doing="read"):
            if not where.exists():
                raise NotFound(f"There is no directory {given}. Give a run or a directory of runs.")
            if not where.is_dir():
                raise InvalidValue(f"{given} is no directory. Give a run or a directory of runs.")
