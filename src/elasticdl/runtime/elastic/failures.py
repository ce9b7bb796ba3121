"""What a worker raised, told to the process that the user looks at: as if it had been raised there.

An exception loses its traceback on the way between processes, and may be of a class that only the worker knows. What
is sent is plain: the frames, the words, and the exception itself where it can be pickled.
"""

from __future__ import annotations

import ast
import contextlib
import pickle
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from traceback import FrameSummary
from types import FunctionType, SimpleNamespace, TracebackType
from typing import Any

from elasticdl.errors import RunError
from elasticdl.quiet import load_tensorflow

__all__ = ["Failure", "raised", "tell"]

LONGEST = 50
"""Frames and causes beyond that are left out: an endless recursion has thousands."""


_ALLOCATING = re.compile(r"(OOM when allocating .*?)( on /job:|\n|$)")


@dataclass(frozen=True)
class Failure:
    """An exception, as data that any process can read.

    Attributes:
      worker: where it was raised.
      module, name: of its class.
      words: what it says.
      pickled: itself; None when it cannot be pickled.
      frames: from the outermost on, with the files of the user's own zoo.
      translated: what AutoGraph says of the lines that it rewrote: the words, and frames.
      others: its cause and its context, by the names of those attributes.
    """

    worker: str
    module: str
    name: str
    words: str
    pickled: bytes | None
    frames: tuple[FrameSummary, ...]
    notes: tuple[str, ...] = ()
    translated: tuple[str, tuple[FrameSummary, ...]] | None = None
    others: Mapping[str, Failure] = field(default_factory=dict)
    suppresses_context: bool = False

    @property
    def summary(self) -> str:
        return f"{self.name}: {self.words}"


def tell(worker: str, error: BaseException, paths: Mapping[str, str] | None = None) -> Failure:
    """Make data of an exception.

    Args:
      worker: who tells.
      paths: directories of this machine, and what they are copies of where the user is.
    """
    paths = paths or {}
    return _tell(worker, _out_of_memory(worker, error, paths) or error, paths, LONGEST)


def _tell(worker: str, error: BaseException, paths: Mapping[str, str], depth: int) -> Failure:
    frames = [_moved(frame, paths) for frame in traceback.extract_tb(error.__traceback__)]
    others = {
        name: _tell(worker, other, paths, depth - 1)
        for name in ("__cause__", "__context__")
        if depth and (other := getattr(error, name)) is not None and other is not error
    }
    return Failure(
        worker=worker,
        module=type(error).__module__,
        name=type(error).__qualname__,
        words=_renamed(str(error), paths),
        pickled=_pickled(error, paths),
        frames=tuple(frames[:LONGEST] + frames[LONGEST:][-LONGEST:]),
        notes=tuple(getattr(error, "__notes__", ())),
        translated=_translated(error, paths),
        others=others,
        suppresses_context=error.__suppress_context__,
    )


def raised(failure: Failure) -> BaseException:
    """The exception again, of its own class if that is known here, with its frames."""
    error = _unpickled(failure) or _stand_in(failure)
    error.__notes__ = list(failure.notes)
    if not error.__notes__:
        del error.__notes__
    for name, other in failure.others.items():
        setattr(error, name, raised(other))
    error.__suppress_context__ = failure.suppresses_context
    if failure.translated is not None:
        words, frames = failure.translated
        stack = [
            SimpleNamespace(filename=f.filename, lineno=f.lineno, function_name=f.name, code=f.line)
            for f in frames
        ]
        metadata = SimpleNamespace(cause_message=words, translated_stack=stack)
        setattr(error, "ag_error_metadata", metadata)  # noqa: B010
    return error.with_traceback(_traceback(failure.frames))


def _out_of_memory(worker: str, error: BaseException, paths: Mapping[str, str]) -> RunError | None:
    """Whatever TensorFlow or Python makes of it, there was no memory left."""
    cause: BaseException | None = error
    for _ in range(LONGEST):
        if cause is None:
            return None
        words = str(cause)
        exhausted = type(cause).__name__ == "ResourceExhaustedError" and "No space" not in words
        if exhausted or isinstance(cause, MemoryError):
            found = _ALLOCATING.search(words)
            said = found[1] if found else type(cause).__name__
            made = RunError(
                f"Out of memory in {worker}{_place(cause, paths)}: {said}. Give a smaller --minibatch_size, or fewer "
                "workers on a machine."
            )
            made.__cause__ = error
            return made.with_traceback(error.__traceback__)
        cause = cause.__cause__ or cause.__context__
    return None


def _place(error: BaseException, paths: Mapping[str, str]) -> str:
    """The last line of the user's zoo, if any."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [moved for frame in frames if (moved := _moved(frame, paths)) is not frame]
    return f", at {theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""


def _renamed(text: str, paths: Mapping[str, str]) -> str:
    for here, there in paths.items():
        text = text.replace(f"{here}/", f"{there}/")
    return text


def _pickled(error: BaseException, paths: Mapping[str, str]) -> bytes | None:
    """A copy, which names the files that the user knows."""
    with contextlib.suppress(Exception):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 -- made here
        copy.args = tuple(_renamed(a, paths) if isinstance(a, str) else a for a in copy.args)
        for name, value in vars(copy).items():
            if isinstance(value, str):
                setattr(copy, name, _renamed(value, paths))
        return pickle.dumps(copy)
    return None


def _unpickled(failure: Failure) -> BaseException | None:
    """The exception itself. Of a class of the user's zoo there is none here."""
    if failure.module.partition(".")[0] in ("keras", "tensorflow"):
        load_tensorflow()  # which would not be quiet
    with contextlib.suppress(Exception):
        error = pickle.loads(failure.pickled or b"")  # noqa: S301 -- of a worker of this job
        if isinstance(error, BaseException) and str(error) == failure.words:
            return error
    return None


def _stand_in(failure: Failure) -> BaseException:
    """An exception that shows itself like the one that is not known here."""
    names = {"__module__": failure.module, "__qualname__": failure.name}
    made: BaseException = type(failure.name.rpartition(".")[2], (Exception,), names)(failure.words)
    return made


def _translated(
    error: BaseException, paths: Mapping[str, str]
) -> tuple[str, tuple[FrameSummary, ...]] | None:
    metadata: Any = getattr(error, "ag_error_metadata", None)
    if metadata is None:
        return None
    stack = (
        FrameSummary(f.filename, f.lineno, f.function_name, line=f.code)
        for f in metadata.translated_stack
    )
    return str(metadata.cause_message), tuple(_moved(frame, paths) for frame in stack)


def _moved(frame: FrameSummary, paths: Mapping[str, str]) -> FrameSummary:
    """The frame in the file that the user knows."""
    for here, there in paths.items():
        if frame.filename.startswith(f"{here}/"):
            filename = there + frame.filename.removeprefix(here)
            return FrameSummary(
                filename,
                frame.lineno,
                frame.name,
                line=frame.line,
                end_lineno=frame.end_lineno,
                colno=frame.colno,
                end_colno=frame.end_colno,
            )
    return frame


def _traceback(frames: tuple[FrameSummary, ...]) -> TracebackType | None:
    """One that looks like these frames: each is of a function that raises at that very place."""
    made: TracebackType | None = None
    for frame in reversed(frames):
        try:
            _raiser(frame)()
        except _Here as here:
            assert here.__traceback__ is not None and here.__traceback__.tb_next is not None
            place = here.__traceback__.tb_next
            made = TracebackType(made, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return made


class _Here(Exception):
    """Raised for the place that it is raised at."""


def _raiser(frame: FrameSummary) -> FunctionType:
    line = frame.lineno or 1
    node = ast.Raise(exc=ast.Name(id="_Here", ctx=ast.Load()), cause=None)
    for one in ast.walk(node):
        if isinstance(one, ast.stmt | ast.expr):
            one.lineno, one.end_lineno = line, frame.end_lineno or line
            one.col_offset, one.end_col_offset = frame.colno or 0, frame.end_colno or 0
    code = compile(ast.Module([node], type_ignores=[]), frame.filename, "exec")
    name = frame.name
    return FunctionType(code.replace(co_name=name, co_qualname=name), {"_Here": _Here}, name)
