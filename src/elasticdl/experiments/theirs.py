"""Calls of user code: what it raises stays its own, with a note where a key of the config is behind it."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from typing import Any

from elasticdl.contract.trace import without_machinery
from elasticdl.errors import ElasticDLError, UnknownKey

__all__ = ["call", "file_of"]


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the user's code. Its exceptions keep their own traceback, without the frames of this room."""
    try:
        return function(*args, **kwargs)
    except UnknownKey as error:
        _say_where(error)
        raise
    except ElasticDLError:
        raise
    except Exception as error:
        _say_what_section(error)
        error.__traceback__ = without_machinery(error.__traceback__)
        raise


def file_of(cls: type) -> str:
    """The file of a class, for messages."""
    try:
        return str(inspect.getsourcefile(cls) or cls.__module__)
    except (TypeError, OSError):
        return cls.__module__


def _say_where(error: UnknownKey) -> None:
    """The error is ours and is shown without its traceback: the line that asked is theirs."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.endswith(("experiments/struct.py", "experiments/theirs.py"))
    ]
    if frames and not getattr(error, "__notes__", ()):
        last = frames[-1]
        error.add_note(f"Asked for by {last.filename}, line {last.lineno}: {last.line}")


def _say_what_section(error: Exception) -> None:
    """`config.data_loader.shuffle` without a section `data_loader` is an attribute of None."""
    if not isinstance(error, AttributeError) or error.obj is not None or error.name is None:
        return
    frames = traceback.extract_tb(error.__traceback__)
    line = (frames[-1].line or "") if frames else ""
    if found := re.search(rf"config\.(\w+)\.{re.escape(error.name)}\b", line):
        section = found[1]
        error.add_note(
            f"The config has no section {section!r}: write one, with {error.name!r} in it."
        )
