"""A terminal that goes away while a run goes on, as when the connection to it is lost."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from elasticdl.tracking.events import EventSink

__all__ = ["WhileSeen", "let_go"]


class WhileSeen:
    """A display, as long as there is somebody to look at it. The run goes on without.

    Who closes a terminal ends what runs there by SIGHUP. A run that is shielded from it is to outlive the terminal.
    """

    def __init__(self, display: EventSink) -> None:
        self._display = display

    def receive(self, event: Mapping[str, Any]) -> None:
        try:
            self._display.receive(event)
        except OSError as error:
            _bear(error)

    def close(self) -> None:
        try:
            self._display.close()
        except OSError as error:
            _bear(error)


def _bear(error: OSError) -> None:
    if error.errno != errno.EIO or not any([let_go(sys.stderr), let_go(sys.stdout)]):
        raise error


def let_go(stream: TextIO) -> bool:
    """Whether nobody can read a stream any more; then what is written to it is dropped from now on."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # not a file, or closed
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    if not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return True
