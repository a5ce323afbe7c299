"""Fewer levels: what to merge, and the merge.

Levels are merged by size: the newest ones up to the oldest that is at most twice as large as all
newer ones together. What stays is more than twice as large as everything above it, so there are
at most about log3(n) levels beside the newest few; and a row that is merged again lies in a level
at least half as large again, so it is rewritten a logarithmic number of times.

A slice merges in every fourth batch only, and slices take turns: no batch merges all of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from penstock.state.chunk import Chunk
from penstock.state.layout import StateLayout
from penstock.state.mapped_files import Levels
from penstock.state.merge import Age, live, merge
from penstock.state.sorted_layer import SortedLayer
from penstock.state.state_files import StateFile, StateFileWriter, extras_of
from penstock.state.version import Merged, Version

EVERY = 4


def to_merge(version: Version, batch: int, slices: Iterable[int]) -> list[tuple[StateFile, ...]]:
    """Choose the runs to merge in this batch, among these slices.

    They are runs of the version that the batch began with. What the batch itself writes is not
    merged before the next one, because timers of new levels are told differently.
    """
    turn = [slice for slice in slices if (batch + slice) % EVERY == 0]
    chosen = [
        (version.of(slice), how_many([run.bytes for run in version.of(slice)])) for slice in turn
    ]
    return [runs[:number] for runs, number in chosen if number]


def how_many(sizes: Sequence[int]) -> int:
    """Return how many of the newest levels to merge; 0 if none.

    >>> how_many([1, 3, 3, 30]), how_many([10, 10, 1000]), how_many([10, 100])
    (3, 2, 0)
    """
    number, newer = 0, 0
    for place, size in enumerate(sizes):
        if place and size <= 2 * newer:
            number = place + 1
        newer += size
    return number


def merge_runs(
    directory: Path,
    layout: StateLayout,
    levels: Levels,
    version: Version,
    chosen: Sequence[tuple[StateFile, ...]],
    *,
    watermark: int | None,
    ttl_us: int | None = None,
) -> list[Merged]:
    """Merge the chosen runs of each slice into one; all go into one file.

    The watermark is the one of this batch: what it has reached is told in this batch.
    """
    age = Age(ttl_us=ttl_us, watermark=watermark, told=watermark)
    opened = [levels.open(runs) for runs in chosen]
    writer = StateFileWriter(
        directory, layout, extras_of(level for some in opened for level in some)
    )
    try:
        for runs, some in zip(chosen, opened, strict=True):
            slice = runs[0].slice
            is_base = runs[-1] == version.of(slice)[-1]
            writer.write(slice, _merged(some, len(layout.key), age if is_base else None))
        written = {run.slice: run for run in writer.close()}
    except BaseException:
        writer.abort()
        raise
    return [Merged(runs=runs, into=written.get(runs[0].slice)) for runs in chosen]


def _merged(levels: Sequence[SortedLayer], keys: int, age: Age | None) -> Iterator[Chunk]:
    """The rows of the merged level. Only where nothing lies below can a row just be left out."""
    for chunk in merge(levels, keys):
        left = chunk if age is None else live(chunk, age)
        if len(left):
            yield left
