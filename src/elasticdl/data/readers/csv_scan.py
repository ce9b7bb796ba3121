"""Where the rows of CSV text begin and end, quotes respected, without parsing the fields.

A quote counts when a field starts with it, as in the parser that reads the rows afterwards; inside
of an unquoted field it is an ordinary character. Blank lines are no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from elasticdl.data.blocks import Block
from elasticdl.data.chunks import MAX_BYTES, MAX_RECORDS
from elasticdl.errors import DataError

__all__ = ["scan"]

_READ_BYTES = 1 << 20
_MAX_ROW_BYTES = 64 << 20
_BOM = b"\xef\xbb\xbf"
_LF, _CR, _QUOTE = 10, 13, 34


def scan(stream: IO[bytes], sep: bytes, url: str) -> Iterator[Block]:
    """Cut a stream into blocks of whole rows, the header alone in the first one (as row 0).

    Raises:
        DataError: a quote is never closed.
    """
    rows = _Rows(sep)
    tail, first, offset = b"", 0, 0
    for piece in _pieces(stream):
        if not (first or offset or tail) and piece.startswith(_BOM):
            piece, offset = piece[len(_BOM) :], len(_BOM)
        data = tail + piece
        ends = rows.ends(piece) + len(tail)
        starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
        for num_records, a, b in _spans(data, starts, ends, alone=first == 0):
            yield Block(first, num_records, offset + a, data[a:b])
            first += num_records
        done = int(ends[-1]) if len(ends) else 0
        tail, offset = data[done:], offset + done
        if len(tail) > _MAX_ROW_BYTES:
            raise DataError(
                f"{url}: row {first + 1} (the header is row 1), which starts at byte {offset}, "
                f"goes on for more than {_MAX_ROW_BYTES >> 20} MiB. Close its quote, or name "
                "another format with reader_type."
            )
    if rows.quoted:
        raise DataError(
            f"{url}: row {first + 1} (the header is row 1), which starts at byte {offset}, opens a "
            'quote that is never closed. Close it, or write a quote inside of a field as "".'
        )
    if tail.strip(b"\r\n"):
        yield Block(first, 1, offset, tail)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Read on; no piece ends in a character that only its successor explains."""
    while piece := stream.read(_READ_BYTES):
        while piece[-1] in (_QUOTE, _CR) and (more := stream.read(1)):
            piece += more
        yield piece


class _Rows:
    """Finds the ends of rows, piece after piece."""

    def __init__(self, sep: bytes) -> None:
        self.quoted = False
        self._previous = _LF
        self._starters = np.array([sep[0], _LF, _CR], dtype=np.uint8)

    def ends(self, piece: bytes) -> NDArray[np.int64]:
        """The offsets just past each line end that stands outside of quotes."""
        codes = np.frombuffer(piece, dtype=np.uint8)
        breaks = _breaks(codes, piece)
        quotes = np.flatnonzero(codes == _QUOTE) if b'"' in piece else np.empty(0, np.int64)
        if len(quotes) or self.quoted:
            before = codes[quotes - 1] if len(quotes) else codes[:0]
            if len(quotes) and quotes[0] == 0:
                before[0] = self._previous
            if self._is_plain(quotes, before):
                breaks = self._outside(breaks, quotes)
            else:
                breaks = self._walk(breaks, quotes, before)
        self._previous = piece[-1]
        return breaks + 1

    def _is_plain(self, quotes: NDArray[np.int64], before: NDArray[Any]) -> bool:
        """Whether every second quote opens a field, or is the second half of a doubled one."""
        opening = before[1::2] if self.quoted else before[0::2]
        return bool(np.all(np.isin(opening, self._starters) | (opening == _QUOTE)))

    def _outside(self, breaks: NDArray[np.int64], quotes: NDArray[np.int64]) -> NDArray[np.int64]:
        parity = np.searchsorted(quotes, breaks) + self.quoted
        self.quoted = bool((len(quotes) + self.quoted) % 2)
        return np.asarray(breaks[parity % 2 == 0])

    def _walk(
        self, breaks: NDArray[np.int64], quotes: NDArray[np.int64], before: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The exact way, for the rare text with quotes inside of unquoted fields."""
        opens = dict(zip(quotes.tolist(), np.isin(before, self._starters).tolist(), strict=True))
        outside, skip = [], -1
        for place in np.sort(np.concatenate((breaks, quotes))).tolist():
            if place not in opens:
                if not self.quoted:
                    outside.append(place)
            elif place == skip:
                continue
            elif not self.quoted:
                self.quoted = opens[place]
            elif place + 1 in opens:
                skip = place + 1
            else:
                self.quoted = False
        return np.array(outside, dtype=np.int64)


def _breaks(codes: NDArray[np.uint8], piece: bytes) -> NDArray[np.int64]:
    """Line ends: LF, CR LF (at its LF), and a CR alone."""
    if b"\r" not in piece:
        return np.flatnonzero(codes == _LF)
    lone = codes == _CR
    lone[:-1] &= codes[1:] != _LF
    return np.flatnonzero((codes == _LF) | lone)


def _spans(
    data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], *, alone: bool
) -> Iterator[tuple[int, int, int]]:
    """(number of rows, start, end) of each block; blank lines are skipped or swallowed."""
    rows = ~_is_blank(data, starts, ends)
    starts, ends = starts[rows], ends[rows]
    i = 0
    while i < len(starts):
        fitting = int(np.searchsorted(ends, starts[i] + MAX_BYTES, side="right"))
        limit = i + 1 if alone else i + MAX_RECORDS
        stop = max(i + 1, min(limit, fitting, len(starts)))
        yield stop - i, int(starts[i]), int(ends[stop - 1])
        i, alone = stop, False


def _is_blank(data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    size = ends - starts
    if b"\r" not in data:
        return np.asarray(size == 1)
    # A lone CR ends a line, so a line of two characters that starts with one is CR LF.
    codes = np.frombuffer(data, dtype=np.uint8)
    return np.asarray((size == 1) | ((size == 2) & (codes[starts] == _CR)))
