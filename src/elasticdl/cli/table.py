"""Plain columns for the terminal: they read well, and `grep` and `awk` can read them too."""

from __future__ import annotations

from collections.abc import Sequence

from elasticdl.cli.run_words import plain

__all__ = ["columns", "size"]


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under a header, each column as wide as its widest cell.

    >>> print(columns(["shard", "records"], [["a.csv", "12"], ["longer.csv", "7"]]))
    shard       records
    a.csv       12
    longer.csv  7
    """
    shown = [[plain(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    return "\n".join(lines)


def size(num_bytes: int) -> str:
    """A number of bytes in words.

    >>> size(512), size(1536), size(3 * 1024**3)
    ('512 B', '1.5 kB', '3.0 GB')
    """
    if num_bytes < 1024:
        return f"{num_bytes} B"
    power = min((num_bytes.bit_length() - 1) // 10, 4)
    return f"{num_bytes / 1024**power:.1f} {' kMGT'[power]}B"
