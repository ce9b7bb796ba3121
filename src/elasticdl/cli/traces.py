"""The user's part of an error: their files and lines, without the frames of the machinery.

Their code is called by ours, through Keras and TensorFlow, and an error in it comes back in one of
three forms:

- a plain exception, whose traceback holds their frames among many others;
- an exception that AutoGraph rewrote while it traced a graph: its traceback points into generated
  files, and `ag_error_metadata` says where these lines come from;
- an `OpError` of TensorFlow's runtime: see `op_errors`.
"""

from __future__ import annotations

import re
import traceback
from traceback import FrameSummary, StackSummary
from typing import Any

from elasticdl import errors
from elasticdl.cli.frames import FRAMEWORKS, format_frames, is_generated, is_of, is_users, user_part
from elasticdl.cli.op_errors import is_op_error, op_trace, plain_text
from elasticdl.errors import ElasticDLError

__all__ = ["framework_words", "told_error", "user_trace"]

_NAMED = re.compile(r"(?P<kind>\w+): (?P<message>.+)", re.S)
_RAISED_BELOW_AN_OP = re.compile(
    r"(?:^|\s)(?P<kind>[A-Z]\w+): (?P<message>.+?)\nTraceback \(most recent call last\):", re.S
)


def user_trace(error: BaseException, model_zoo: str | None) -> str | None:
    """The traceback as the user should read it; None when no code of theirs takes part."""
    if is_op_error(error):
        return op_trace(error, _frames(error), model_zoo)
    frames = user_part(_frames(error), model_zoo)
    if frames and (message := _cause_message(error)):
        return format_frames(frames) + message
    if not frames and not _in_user_syntax(error, model_zoo):
        return None
    summary = traceback.TracebackException.from_exception(error)
    _cut(summary, model_zoo)
    return "".join(summary.format())


def framework_words(error: BaseException) -> str | None:
    """What Keras or TensorFlow says of a model in which no line is the user's own."""
    frames = _frames(error)
    if not frames or not is_of(FRAMEWORKS, frames[-1].filename):
        return None
    message = _cause_message(error) or f"{type(error).__name__}: {error}"
    return f"{message}\nKeras said so of your model and data, in no line of your own."


def told_error(error: BaseException) -> ElasticDLError | None:
    """An error of ours that was raised below AutoGraph or an op, which keep its text alone."""
    if message := _cause_message(error):
        found = _NAMED.match(message)
    elif is_op_error(error):
        found = _RAISED_BELOW_AN_OP.search(plain_text(error))
    else:
        return None
    kind = getattr(errors, found["kind"], None) if found else None
    if found is None or not isinstance(kind, type) or not issubclass(kind, ElasticDLError):
        return None
    return kind(found["message"])


def _cause_message(error: BaseException) -> str | None:
    """What was said before AutoGraph rewrote it, for example `KeyError: 'x'`."""
    metadata = getattr(error, "ag_error_metadata", None)
    return None if metadata is None else str(metadata.cause_message)


def _frames(error: BaseException) -> list[FrameSummary]:
    """The frames of an exception, with AutoGraph's generated ones as the lines they stand for."""
    frames: list[FrameSummary] = list(traceback.extract_tb(error.__traceback__))
    metadata: Any = getattr(error, "ag_error_metadata", None)
    if metadata is None:
        return frames
    generated = (i for i, frame in enumerate(frames) if is_generated(frame.filename))
    above = frames[: next(generated, len(frames))]
    return above + [
        FrameSummary(
            frame.filename, frame.lineno, frame.function_name or "<lambda>", line=frame.code
        )
        for frame in reversed(metadata.translated_stack)
    ]


def _cut(summary: traceback.TracebackException, model_zoo: str | None) -> None:
    """Leave the user's part of an exception, and of those that it came from."""
    summary.stack = StackSummary.from_list(user_part(summary.stack, model_zoo))
    for other in (summary.__cause__, summary.__context__):
        if other is not None:
            _cut(other, model_zoo)


def _in_user_syntax(error: BaseException, model_zoo: str | None) -> bool:
    return (
        isinstance(error, SyntaxError)
        and error.filename is not None
        and is_users(error.filename, model_zoo)
    )
