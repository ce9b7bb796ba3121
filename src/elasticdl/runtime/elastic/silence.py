"""Ray without its noise: its lines stay away from the user's terminal, and its settings from this process."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

__all__ = ["environment", "held_stderr", "silent_ray", "starting_ray"]


@contextmanager
def silent_ray(log_level: str) -> Iterator[None]:
    """What Ray logs, and what it prints of workers that died, is held back, except with DEBUG."""
    if log_level == "DEBUG":
        yield
        return
    from ray._private import worker

    logger = logging.getLogger("ray")
    level, shown = logger.level, getattr(worker, "_worker_logs_enabled", True)
    logger.setLevel(logging.CRITICAL)
    # No public switch does it: "(raylet) A worker died ..." is printed whatever `log_to_driver` says.
    setattr(worker, "_worker_logs_enabled", False)  # noqa: B010
    try:
        yield
    finally:
        setattr(worker, "_worker_logs_enabled", shown)  # noqa: B010
        logger.setLevel(level)


@contextmanager
def starting_ray(variables: Mapping[str, str | None] | None = None) -> Iterator[None]:
    """Around `ray.init`: with these environment variables, with no word on Ray's own future.

    Ray makes SIGTERM end the process while it starts. After it, it means what it meant before.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with environment(variables or {}), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        if is_main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def held_stderr() -> Iterator[IO[bytes]]:
    """What is written to stderr, also by Ray's C++, goes to a file that is gone after it."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        try:
            saved = os.dup(2)
        except OSError:  # there is no stderr
            yield held
            return
        os.dup2(held.fileno(), 2)
        try:
            yield held
        finally:
            os.dup2(saved, 2)
            os.close(saved)


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Environment variables that are set, or with None absent, for a while.

    After it they are as before, and so are those that Ray sets itself: its own, and what `breakpoint()` does.
    """
    before = {**dict.fromkeys(variables), **_of_ray(), **_present(variables)}
    _set(variables)
    try:
        yield
    finally:
        _set({**dict.fromkeys(_of_ray()), **before})


def _of_ray() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("RAY_") or name == "PYTHONBREAKPOINT"
    }


def _present(names: Mapping[str, str | None]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
