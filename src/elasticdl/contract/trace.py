"""Tracebacks of the user's own errors, without the frames of the machinery that called them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import TracebackType

__all__ = ["without_machinery"]

_CONTRACT = Path(__file__).resolve().parent
_MACHINERY = (
    str(_CONTRACT),
    str(_CONTRACT.parent / "experiments"),
    str(Path(str(importlib.__file__)).parent),
    "<frozen importlib",
)


def without_machinery(trace: TracebackType | None) -> TracebackType | None:
    """The same traceback without the frames of what loads user code and of Python's import system."""
    if trace is None:
        return None
    rest = without_machinery(trace.tb_next)
    filename = trace.tb_frame.f_code.co_filename
    if filename.startswith(_MACHINERY):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
