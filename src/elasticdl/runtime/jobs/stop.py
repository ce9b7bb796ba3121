"""Runs asked to stop and waited for. The wish is a file in the run directory, so it reaches a run at any address."""

from __future__ import annotations

import time
from collections.abc import Callable

from elasticdl.artifacts.hold import Holder
from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import InvalidValue
from elasticdl.runtime.jobs.account import Account
from elasticdl.runtime.jobs.find import account
from elasticdl.runtime.jobs.jobs import Say, left_with
from elasticdl.runtime.jobs.logs import poll_s

__all__ = ["stop", "wait_for"]

PATIENCE_S = 30.0
"""After so long it is said what a run that was asked to stop may be doing."""


def stop(
    directory: RunDirectory,
    say: Say,
    *,
    waits: bool = True,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Account | None:
    """Ask a run to stop with a checkpoint, and, if `waits`, wait until it has.

    Raises:
      InvalidValue: it has ended already.
      Left: Ctrl-C after it was asked.
    """
    before, holder = account(directory), directory.holder
    if holder is None:
        raise InvalidValue(f"The run in {directory.path} has ended already: {before.said}.")
    with left_with(f"{before.name} was asked to stop, and will."):
        directory.ask_to_stop()
        say(f"Asked {before.name} ({holder}) to stop.")
        return _ended(directory, holder, say, wait, clock) if waits else None


def _ended(
    directory: RunDirectory,
    holder: Holder,
    say: Say,
    wait: Callable[[float], None],
    clock: Callable[[], float],
) -> Account:
    say("Waiting for its checkpoint ...")
    ended = wait_for(directory, PATIENCE_S, wait=wait, clock=clock)
    if ended is None:
        say(
            "It stops between two steps, and may still be loading or waiting for data. If it is stuck, end "
            f"{directory.holder or holder} yourself. Still waiting ..."
        )
        ended = wait_for(directory, None, wait=wait, clock=clock)
    assert ended is not None
    directory.take_back()
    return ended


def wait_for(
    directory: RunDirectory,
    timeout_s: float | None,
    *,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Account | None:
    """What became of a run when it has ended; None when it takes longer."""
    until = None if timeout_s is None else clock() + timeout_s
    while directory.holder is not None:
        if until is not None and clock() >= until:
            return None
        wait(poll_s(directory) if until is None else min(poll_s(directory), timeout_s or 0.0))
    return account(directory)
