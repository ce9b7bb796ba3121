"""Words for whoever waits: said only where it takes longer than one notices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["NOTICED_S", "said_after"]

NOTICED_S = 3.0


@contextmanager
def said_after(seconds: float, say: Callable[[str], None], words: str) -> Iterator[None]:
    """Say something if the block takes longer than that."""
    timer = threading.Timer(seconds, say, [words])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
