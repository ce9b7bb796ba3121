"""Whose code a frame of a traceback is: the user's, the machinery's that calls it, or a library's."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary

__all__ = ["format_frames", "is_generated", "is_of", "is_users", "user_part"]

FRAMEWORKS = ("keras", "tensorflow")
MACHINERY = ("elasticdl", "abstractions", "click", "optree", "wrapt", *FRAMEWORKS)
"""Packages that call the user's code: their frames are never what the user wants to read."""

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which may well lie below the user's own folder, in a `.venv`."""

_STDLIB = Path(sysconfig.get_paths()["stdlib"]).resolve()


def user_part(frames: Sequence[FrameSummary], model_zoo: str | None) -> list[FrameSummary]:
    """From the first frame of theirs on, without the machinery; nothing when there is none."""
    first = next((i for i, f in enumerate(frames) if is_users(f.filename, model_zoo)), len(frames))
    return [frame for frame in frames[first:] if not _is_machinery(frame.filename)]


def format_frames(frames: Sequence[FrameSummary]) -> str:
    lines = "".join(StackSummary.from_list(list(frames)).format())
    return f"Traceback (most recent call last):\n{lines}"


def is_users(filename: str, model_zoo: str | None) -> bool:
    if filename.startswith("<") or _is_machinery(filename):
        return False
    path = Path(filename).resolve()
    if path.stem == "elasticdl" and path == Path(sys.argv[0]).resolve():
        return False  # the script that an installer made for the command
    if model_zoo is not None and path.is_relative_to(zoo := Path(model_zoo).resolve()):
        return INSTALLED.isdisjoint(path.relative_to(zoo).parts)
    return INSTALLED.isdisjoint(path.parts) and not path.is_relative_to(_STDLIB)


def is_generated(filename: str) -> bool:
    """Whether AutoGraph wrote the file: a translation of the user's code, or of ours."""
    return os.path.basename(filename).startswith("__autograph_generated_file")


def is_of(packages: Sequence[str], filename: str) -> bool:
    path = Path(filename).resolve()
    return any(path.is_relative_to(folder) for name in packages for folder in _folders(name))


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen ") or is_generated(filename) or is_of(MACHINERY, filename)


@functools.cache
def _folders(package: str) -> tuple[Path, ...]:
    return tuple(_find_folders(package))


def _find_folders(package: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder).resolve()
