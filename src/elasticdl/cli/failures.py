"""How an error is shown, and which exit code it ends with.

ElasticDLError               its message, nothing else            its own exit code
a wrong command line         the message and where help is        2
no space left                the path and what to do              1
the user's own exception     their traceback, none of our frames  1
sys.exit() in their code     the line that called it              1
an exception of Keras        what it says of the model            1
an exception of ours         the whole traceback, "this is a bug" 1
Ctrl-C                       nothing: the engine has spoken       130
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback

import click

from elasticdl.cli.frames import is_users
from elasticdl.cli.outcome import INTERRUPTED
from elasticdl.cli.presentation import Presentation
from elasticdl.cli.traces import framework_words, told_error, user_trace
from elasticdl.errors import ElasticDLError
from elasticdl.tracking.terminal import let_go

__all__ = ["show"]

_NO_READER = (errno.EPIPE, errno.EIO)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def show(error: BaseException, presentation: Presentation) -> int:
    """Say on stderr what went wrong, and return the exit code."""
    if isinstance(error, click.Abort):
        return INTERRUPTED
    if isinstance(error, OSError) and error.errno in _NO_READER and let_go(sys.stdout):
        return 1  # as `head` and terminals go away: there is nobody to say something to
    if isinstance(error, click.ClickException):
        _show_usage(error)
        return error.exit_code
    meant = told_error(error) or error
    if presentation.full_traceback:
        _say("".join(traceback.format_exception(error)))
    else:
        _say(_explain(meant, presentation))
    return meant.exit_code if isinstance(meant, ElasticDLError) else 1


def _explain(error: BaseException, presentation: Presentation) -> str:
    if isinstance(error, ElasticDLError):
        title = "Error: " if error.is_failure else ""
        return "\n".join([f"{title}{error}", *getattr(error, "__notes__", ())])
    if isinstance(error, SystemExit):
        return f"Error: {_exit_message(error, presentation.model_zoo)}"
    if _no_space(error):
        return f"Error: {_space_message(error)}"
    if trace := user_trace(error, presentation.model_zoo):
        return trace
    if words := framework_words(error):
        return f"{words}\nRun with --log_level=DEBUG to see the whole traceback."
    return (
        "".join(traceback.format_exception(error))
        + "Error: this is a bug of ElasticDL, not of your model. "
        "Please report it with the traceback above and the command that you ran."
    )


def _exit_message(error: SystemExit, model_zoo: str | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if is_users(frame.filename, model_zoo)]
    frame = (theirs or list(frames))[-1]
    return (
        f"{frame.filename}, line {frame.lineno}, called exit({error.code!r}), which ended the "
        f"command. Raise an exception or return instead: {frame.line}"
    )


def _no_space(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    # TensorFlow's own writers say it in words only.
    return type(error).__name__ == "ResourceExhaustedError" and "No space left" in str(error)


def _space_message(error: BaseException) -> str:
    filename = getattr(error, "filename", None)
    where = f" while writing {os.fspath(filename)!r}" if filename else ""
    return (
        f"No space left on the device{where}. Free some space, or give an --output on another "
        "device, and run the command again. With --resume a training goes on from its last "
        "checkpoint."
    )


def _show_usage(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _say(error.format_message())
        return
    _say(f"Error: {error.format_message()}")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        _say(f"Try '{error.ctx.command_path} --help'.")


def _say(text: str) -> None:
    text = text.rstrip("\n")
    print(text if sys.stderr.isatty() else _COLOUR.sub("", text), file=sys.stderr)
