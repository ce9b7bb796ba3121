"""Between the thread that runs a client's statements and the one that sends to the client: a short queue.

Either side may go away. Then the other is not left waiting: who puts hears that nobody listens.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Channel", "NobodyListens"]

Item = TypeVar("Item")


class NobodyListens(Exception):
    """The one who takes has gone."""


class Channel(Generic[Item]):
    """Holds at most `size` items: a client that reads slowly makes the database wait, not the memory grow."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._ended = self._left = False
        self._error: BaseException | None = None

    def put(self, item: Item) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._left or len(self._items) < self._size)
            if self._left:
                raise NobodyListens
            self._items.append(item)
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more will be put; an error is raised where the items are taken, after the last."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def leave(self) -> None:
        """Nobody will take any more."""
        with self._changed:
            self._left = True
            self._items.clear()
            self._changed.notify_all()

    def has_left(self) -> bool:
        return self._left

    def __iter__(self) -> Iterator[Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._left or self._ended or self._items)
                if not self._items:
                    break
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
        if self._error is not None and not self._left:
            raise self._error
