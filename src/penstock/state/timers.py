"""Which timers a batch tells, each of them once.

The watermark never falls, and batches follow each other: what is the watermark in one is `before`
in the next. Each level tells the timers in (before, watermark]; earlier ones were told. Only a
timer that had passed when it was set was not: a level knows the watermark of the batch that wrote
it (`at`), and tells the timers up to there as well. Whoever is told one of these puts the row again
without its timer, so that a newer level hides it from then on. After a merge nothing of that kind
is left: a merge happens in a batch that tells all timers of the levels it merges.
"""

from collections.abc import Sequence

import numpy as np

from penstock.state.chunk import Chunk
from penstock.state.sorted_layer import SortedLayer


def due_rows(
    levels: Sequence[SortedLayer], low: int | None, high: int | None, keys: int
) -> list[Chunk]:
    """Return the rows of these levels with low < timer <= high, if no newer level has their keys.

    Without low there are no earlier timers; without high there is no event time yet.
    """
    if high is None:
        return []
    found = []
    for number, level in enumerate(levels):
        for chunk in level.due(low, high):
            found += not_hidden([chunk], levels[:number], keys)
    return found


def not_hidden(chunks: Sequence[Chunk], newer: Sequence[SortedLayer], keys: int) -> list[Chunk]:
    """Return the rows whose keys are in none of the newer levels."""
    left = []
    for chunk in chunks:
        for level in newer:
            inside = level.find(chunk.hashes, chunk.rows.columns[:keys])
            chunk = chunk.take(np.flatnonzero(inside < 0))
        if len(chunk):
            left.append(chunk)
    return left
