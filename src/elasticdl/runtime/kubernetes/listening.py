"""Listening to who may fall silent: what comes is handed on, and a silence is noticed while it lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["heard", "seconds_text"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Heard(Generic[T]):
    value: T


@dataclass(frozen=True)
class _Ended:
    error: BaseException | None = None


def heard(
    ask: Callable[[], Iterable[T]], quiet_s: float, on_silence: Callable[[float], None]
) -> Iterator[T]:
    """What somebody answers, one by one. Errors of theirs are raised here.

    Reading blocks, so it is done by a thread; here one can be told, and may press Ctrl-C. Who gives up must close
    the connection: that ends the thread.

    Args:
      ask: asks and reads.
      quiet_s: a silence of so long, and each further one, is told.
      on_silence: gets its seconds; what it raises ends the listening.
    """
    answers: SimpleQueue[_Heard[T] | _Ended] = SimpleQueue()
    threading.Thread(target=_listen, args=[ask, answers], daemon=True).start()
    last = time.monotonic()
    while True:
        try:
            answer = answers.get(timeout=quiet_s)
        except Empty:
            on_silence(time.monotonic() - last)
            continue
        if isinstance(answer, _Ended):
            if answer.error is not None:
                raise answer.error
            return
        last = time.monotonic()
        yield answer.value


def _listen(ask: Callable[[], Iterable[T]], answers: SimpleQueue[_Heard[T] | _Ended]) -> None:
    try:
        for value in ask():
            answers.put(_Heard(value))
        answers.put(_Ended())
    except BaseException as error:
        answers.put(_Ended(error))


def seconds_text(seconds: float) -> str:
    """A time to stand in a sentence.

    >>> seconds_text(30.2), seconds_text(60), seconds_text(3599)
    ('30 seconds', '1 minute', '59 minutes')
    """
    count, unit = (int(seconds), "second") if seconds < 60 else (int(seconds / 60), "minute")
    return f"{count} {unit}{'' if count == 1 else 's'}"
