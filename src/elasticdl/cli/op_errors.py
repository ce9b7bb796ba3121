"""Errors of TensorFlow's runtime, which knows ops and not the lines of Python that made them.

Its messages have the user's frames as text, or only the name of the op, among much about nodes and devices.
"""

from __future__ import annotations

import re
from traceback import FrameSummary

from elasticdl.cli.frames import format_frames, user_part

__all__ = ["is_op_error", "op_trace", "plain_text"]

_NOISE = re.compile(
    r"\{\{function_node [^}]*\}\} |\s*\[\[[^\]\n]*\]\]|\s*\[Op:[^\]]*\]( name: )?"
    r"|Graph execution error:\s*|<stack traces unavailable>\n"
)
_BARE_HEADER = re.compile(
    r"Detected at node .+ defined at \(most recent call last\):\n(?!\s*File )"
)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>.+)$', re.M)
_NODE = re.compile(r"\{\{node (?:[^}]*/)?([^}/]+)\}\}")


def is_op_error(error: BaseException) -> bool:
    """By name, because importing TensorFlow to ask costs seconds."""
    return any(
        kind.__name__ == "OpError" and kind.__module__.startswith("tensorflow.")
        for kind in type(error).__mro__
    )


def plain_text(error: BaseException) -> str:
    """The message without nodes and devices."""
    return _BARE_HEADER.sub("", _NOISE.sub("", str(error))).strip()


def op_trace(error: BaseException, raised_in: list[FrameSummary], model_zoo: str | None) -> str:
    """The user's lines if any is known, and the reason."""
    text = plain_text(error)
    told = [
        FrameSummary(match["file"], int(match["line"]), match["name"].strip(" *"))
        for match in _FRAME.finditer(text)
    ]
    from_python = "Traceback (most recent call last)" in text
    # A Python function inside of a graph names its own exception, which is the one to show.
    reason = _last_words(text) if from_python else f"{type(error).__name__}: {_last_words(text)}"
    if frames := user_part(told, model_zoo) or user_part(raised_in, model_zoo):
        return format_frames(frames) + reason
    if from_python:
        return f"In the function {told[-1].name!r}, which your dataset calls:\n{reason}"
    return f"{reason}\n{_where(error)}"


def _where(error: BaseException) -> str:
    node = _NODE.search(str(error))
    op = f" in the op {node[1]!r}" if node else ""
    if "IteratorGetNext" in str(error):
        return f"It came up{op} of your dataset function, while records were read."
    return f"It came up{op} of your model, while it ran."


def _last_words(text: str) -> str:
    """What follows the last frame and its line of code."""
    ends = [match.end() for match in _FRAME.finditer(text)]
    return text[ends[-1] :].split("\n\n", 1)[-1].strip() if ends else text
