"""A few hundred records of a source that show as many of its values as a look at some thousands can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from elasticdl.data.source import Source

__all__ = ["take_sample"]

_RECORDS = 256
_PLACES = 8
"""Where in the data it looks: data may be sorted by a column."""
_CELLS = 200_000
_VALUES = 8
"""So many values of a column are looked for beyond the first records: the rare class of a label, for one."""


def take_sample(source: Source) -> NDArray[Any]:
    """Rows of strings, from several places of the data."""
    width = len(source.metadata.column_names or ())
    each = max(_RECORDS // _PLACES, _CELLS // (_PLACES * width))
    spans = [_read(source, *span) for span in _spans(source, each)]
    rows = np.concatenate(spans)
    first = _RECORDS // len(spans)
    starts = np.cumsum([0, *(len(span) for span in spans[:-1])])
    chosen = {
        int(start) + i
        for start, span in zip(starts, spans, strict=True)
        for i in range(min(first, len(span)))
    }
    for column in rows.T:
        _add_values(column, chosen)
    return rows[sorted(chosen)]


def _spans(source: Source, each: int) -> Iterator[tuple[str, int, int]]:
    """Spread over all records; of files that are read from the front only, the beginning of the first."""
    shards = source.shards
    total = sum(shard.num_records for shard in shards)
    if any(shard.sequential for shard in shards):
        yield shards[0].name, 0, min(shards[0].num_records, each)
        return
    step = max(each, total // _PLACES)
    before = 0
    for shard in shards:
        end = before + shard.num_records
        for place in range(-(-before // step) * step, end, step):
            yield shard.name, place - before, min(shard.num_records, place - before + each)
        before = end


def _read(source: Source, shard: str, start: int, end: int) -> NDArray[Any]:
    return np.concatenate([cast(Any, chunk) for chunk in source.read(shard, start, end)])


def _add_values(column: NDArray[Any], chosen: set[int]) -> None:
    """Records that show values of the column which those chosen do not."""
    known = {column[i] for i in chosen}
    enough = max(2, _VALUES)
    for i, value in enumerate(column.tolist()):
        if len(known) >= enough:
            return
        if value not in known:
            known.add(value)
            chosen.add(i)
