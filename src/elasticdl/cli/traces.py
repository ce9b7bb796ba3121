"""The user's part of a traceback: their files and lines, without the frames of the machinery.

Their code is called by ours, through Keras and TensorFlow, and an error in it comes back in one of
three forms:

- a plain exception, whose traceback holds their frames among many others;
- an exception that AutoGraph rewrote while it traced a graph: its traceback points into generated
  files, and `ag_error_metadata` says where these lines come from;
- an `OpError` of TensorFlow's runtime, which has their frames as text in its message, if at all.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary
from typing import Any

from elasticdl import errors
from elasticdl.errors import ElasticDLError

__all__ = ["told_error", "user_trace"]

MACHINERY = ("elasticdl", "abstractions", "keras", "tensorflow", "click", "optree", "wrapt")
"""Packages that call the user's code: their frames are never what the user wants to read."""

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which may well lie below the user's own folder, in a `.venv`."""

_STDLIB = Path(sysconfig.get_paths()["stdlib"]).resolve()
_FRAME_TEXT = re.compile(
    r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>.+)$', re.M
)
_NODE_TEXT = re.compile(
    r"\{\{function_node [^}]*\}\} |\s*\[\[\{\{node [^\]]*\]\]|\s*\[Op:[^\]]*\]( name: )?"
)
_NAMED_TEXT = re.compile(r"(?P<kind>\w+): (?P<message>.+)", re.S)
_PYTHON_TEXT = re.compile(
    r"(?:^|\s)(?P<kind>[A-Z]\w+): (?P<message>.+?)\nTraceback \(most recent call last\):", re.S
)
_IN_DATASET = "Error in user-defined function passed to"


def user_trace(error: BaseException, model_zoo: str | None) -> str | None:
    """The traceback as the user should read it; None when no code of theirs takes part."""
    if _is_op_error(error):
        return _op_trace(error, model_zoo)
    frames = _user_part(_frames(error), model_zoo)
    if frames and (message := _cause_message(error)):
        return _header(frames) + message
    if not frames and not _in_user_syntax(error, model_zoo):
        return None
    summary = traceback.TracebackException.from_exception(error)
    _cut(summary, model_zoo)
    return "".join(summary.format())


def _cause_message(error: BaseException) -> str | None:
    """What was said before AutoGraph rewrote it, for example `KeyError: 'x'`."""
    metadata = getattr(error, "ag_error_metadata", None)
    return None if metadata is None else str(metadata.cause_message)


def told_error(error: BaseException) -> ElasticDLError | None:
    """An error of ours that was raised below AutoGraph or an op, which keep its text alone."""
    if message := _cause_message(error):
        found = _NAMED_TEXT.match(message)
    elif _is_op_error(error):
        found = _PYTHON_TEXT.search(_NODE_TEXT.sub("", str(error)))
    else:
        return None
    kind = getattr(errors, found["kind"], None) if found else None
    if found is None or not isinstance(kind, type) or not issubclass(kind, ElasticDLError):
        return None
    return kind(found["message"])


def _frames(error: BaseException) -> list[FrameSummary]:
    """The frames of an exception, with AutoGraph's generated ones as the lines they stand for."""
    frames: list[FrameSummary] = list(traceback.extract_tb(error.__traceback__))
    metadata: Any = getattr(error, "ag_error_metadata", None)
    if metadata is None:
        return frames
    generated = (i for i, frame in enumerate(frames) if _is_generated(frame.filename))
    above = frames[: next(generated, len(frames))]
    return above + [
        FrameSummary(frame.filename, frame.lineno, frame.function_name, line=frame.code)
        for frame in reversed(metadata.translated_stack)
    ]


def _user_part(frames: Sequence[FrameSummary], model_zoo: str | None) -> list[FrameSummary]:
    """From the first frame of theirs on, without the machinery."""
    first = next((i for i, f in enumerate(frames) if _is_users(f.filename, model_zoo)), len(frames))
    return [
        frame
        for frame in frames[first:]
        if _is_users(frame.filename, model_zoo) or not _is_machinery(frame.filename)
    ]


def _cut(summary: traceback.TracebackException, model_zoo: str | None) -> None:
    """Leave the user's part of an exception, and of those that it came from."""
    summary.stack = StackSummary.from_list(_user_part(summary.stack, model_zoo))
    for other in (summary.__cause__, summary.__context__):
        if other is not None:
            _cut(other, model_zoo)


def _op_trace(error: BaseException, model_zoo: str | None) -> str | None:
    text = _NODE_TEXT.sub("", str(error)).strip()
    told = [
        FrameSummary(match["file"], int(match["line"]), match["name"].strip(" *"))
        for match in _FRAME_TEXT.finditer(text)
    ]
    frames = _user_part(told, model_zoo) or _user_part(_frames(error), model_zoo)
    if frames:
        return _header(frames) + f"{_plain_name(error, text)}{_last_words(text)}"
    if _IN_DATASET not in text:
        return None
    if not told:
        return f"{type(error).__name__}: {text}"
    return f"In the function {told[-1].name!r}, which your dataset calls:\n{_last_words(text)}"


def _plain_name(error: BaseException, text: str) -> str:
    """A Python function inside of a graph names its own exception, which is the one to show."""
    return "" if "Traceback (most recent call last)" in text else f"{type(error).__name__}: "


def _last_words(text: str) -> str:
    """What follows the last frame and its line of code."""
    ends = [match.end() for match in _FRAME_TEXT.finditer(text)]
    if not ends:
        return text
    paragraphs = text[ends[-1] :].split("\n\n", 1)
    return paragraphs[-1].strip()


def _header(frames: Sequence[FrameSummary]) -> str:
    lines = "".join(StackSummary.from_list(list(frames)).format())
    return f"Traceback (most recent call last):\n{lines}"


def _is_op_error(error: BaseException) -> bool:
    """By name, because importing TensorFlow to ask costs seconds."""
    return any(
        kind.__name__ == "OpError" and kind.__module__.startswith("tensorflow.")
        for kind in type(error).__mro__
    )


def _in_user_syntax(error: BaseException, model_zoo: str | None) -> bool:
    return (
        isinstance(error, SyntaxError)
        and error.filename is not None
        and _is_users(error.filename, model_zoo)
    )


def _is_generated(filename: str) -> bool:
    return os.path.basename(filename).startswith("__autograph_generated_file")


def _is_users(filename: str, model_zoo: str | None) -> bool:
    if filename.startswith("<") or _is_generated(filename) or _is_machinery(filename):
        return False
    path = Path(filename).resolve()
    if model_zoo is not None and path.is_relative_to(zoo := Path(model_zoo).resolve()):
        return INSTALLED.isdisjoint(path.relative_to(zoo).parts)
    return INSTALLED.isdisjoint(path.parts) and not path.is_relative_to(_STDLIB)


def _is_machinery(filename: str) -> bool:
    if filename.startswith("<frozen ") or _is_generated(filename):
        return True
    path = Path(filename).resolve()
    return any(path.is_relative_to(folder) for folder in _machinery())


@functools.cache
def _machinery() -> tuple[Path, ...]:
    return tuple(_package_folders())


def _package_folders() -> Iterator[Path]:
    for name in MACHINERY:
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(folder).resolve()
