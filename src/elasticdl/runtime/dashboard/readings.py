"""A run's events, read as they are written: each byte once. Of the lines only the places are kept, not the text."""

from __future__ import annotations

import copy
import json
from array import array
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from upath import UPath

from elasticdl.runtime.dashboard.digest import Digest, Event
from elasticdl.runtime.dashboard.files import Entry, read_bytes

__all__ = ["Reading"]

HEAD = 200
"""So many bytes tell a file from the one that has replaced it: the first line has the time of the run's begin."""
PIECE = 8 << 20
LONGEST = 4 << 20
"""A line beyond it is none of ours."""
LONGEST_KIND, MOST_KINDS = 100, 1000


class Reading:
    """The events of one file.

    Args:
      at_once: about how many bytes are read at one look; None for all. Nobody should wait for a huge file.

    Attributes:
      digest: what the views need of them.
      read: how much of the file was read, from 0 to 1.
      broken: how many whole lines were no event.
      kinds: the kinds of events, in the order in which they came first.
      searches: up to which event was searched for what, and which were found.
      offsets, lengths, kind_of: where each event's line begins, how long it is, and the number of its kind.
    """

    def __init__(self, file: UPath, root: UPath, at_once: int | None = None) -> None:
        self._file, self._root, self._at_once = file, root, at_once
        self._forget()

    def _forget(self) -> None:
        self.digest = Digest()
        self.broken = 0
        self.kinds: list[str] = []
        self.offsets, self.lengths, self.kind_of = array("Q"), array("I"), array("H")
        self.searches: OrderedDict[Hashable, tuple[int, list[int]]] = OrderedDict()
        self._kind_numbers: dict[str, int] = {}
        self._head = b""
        self._offset = 0
        self.mark = ""
        self.read = 1.0

    @property
    def total(self) -> int:
        return len(self.offsets)

    def copied(self) -> Reading:
        """As it is now, to be looked at while the other is read on. Searches are remembered by both."""
        one = copy.copy(self)
        one.kinds, one.offsets = list(self.kinds), self.offsets[:]
        one.lengths, one.kind_of = self.lengths[:], self.kind_of[:]
        one.digest = copy.copy(self.digest)
        one.digest.changes = dict(self.digest.changes)
        one.digest.epochs_from = list(self.digest.epochs_from)
        return one

    def update(self, entry: Entry | None) -> bool:
        """Read what is new, if the file has changed at all; says whether it has."""
        mark = "" if entry is None else entry.mark
        if mark == self.mark:
            return False
        if entry is None or entry.bytes < self._offset or not self._is_same():
            self._forget()
        if entry is not None:
            rest = self._read_on(entry.bytes)
            self.read = 1 - rest / max(1, entry.bytes)
            mark += f"-{rest}" if rest else ""  # so that the next look goes on
        self.mark = mark
        return True

    def lines(self, numbers: list[int]) -> list[bytes]:
        """The lines of these events, which are in order; those near each other are read at once."""
        found: list[bytes] = []
        at = 0
        while at < len(numbers):
            begin = self.offsets[numbers[at]]
            end = at
            while end < len(numbers) and self._end(numbers[end]) - begin <= PIECE:
                end += 1
            end = max(end, at + 1)
            data = read_bytes(self._file, self._root, begin, self._end(numbers[end - 1]))
            for one in numbers[at:end]:
                start = self.offsets[one] - begin
                found.append(data[start : start + self.lengths[one]])
            at = end
        return found

    def _end(self, number: int) -> int:
        return self.offsets[number] + self.lengths[number]

    def _is_same(self) -> bool:
        if not self._head:
            return True
        return read_bytes(self._file, self._root, 0, len(self._head)) == self._head

    def _read_on(self, size: int) -> int:
        """Read the whole lines up to here; says how many bytes are left for the next look."""
        rest, begin = b"", self._offset
        while True:
            piece = read_bytes(
                self._file, self._root, self._offset + len(rest), self._until(size, rest)
            )
            data = rest + piece
            whole = data.rfind(b"\n") + 1
            if not self._offset and not self._head:
                self._head = data[: min(HEAD, whole)]
            self._take(data[:whole])
            self._offset += whole
            rest = data[whole:]
            if len(rest) > LONGEST:
                self._offset, self.broken, rest = self._offset + len(rest), self.broken + 1, b""
            if not piece or self._offset + len(rest) >= size:
                return 0
            if self._at_once is not None and self._offset - begin >= self._at_once:
                return size - self._offset

    def _until(self, size: int, rest: bytes) -> int:
        return min(size, self._offset + len(rest) + PIECE)

    def _take(self, data: bytes) -> None:
        at = self._offset
        for line in data.split(b"\n")[:-1]:
            event = _event(line)
            if event is not None:
                self._add(event, at, len(line))
            elif line.strip():
                self.broken += 1
            at += len(line) + 1

    def _add(self, event: Event, offset: int, length: int) -> None:
        kind = event["event"][:LONGEST_KIND]
        if kind not in self._kind_numbers and len(self.kinds) < MOST_KINDS:
            self._kind_numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        number = self._kind_numbers.get(kind, len(self.kinds) - 1)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.kind_of.append(number)
        self.digest.add(event)


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(event, dict) and isinstance(event.get("event"), str)
    return event if is_event else None
