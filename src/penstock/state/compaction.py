"""Compaction: chooses the layers of a slice to merge, and merges them.

Layers are merged by size: from the newest up to the oldest that is at most twice as large as all
newer ones together. A layer that stays is more than twice as large as everything above it, so there
are at most about log3(n) layers besides the newest few. A merged row moves to a layer at least half
as large again, so it is rewritten a logarithmic number of times.

A slice merges only in every fourth batch, and slices take turns: no batch merges all of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from penstock.state.chunk import Chunk
from penstock.state.layout import StateLayout
from penstock.state.mapped_files import LayerCache
from penstock.state.merge import Age, live, merge
from penstock.state.sorted_layer import SortedLayer
from penstock.state.state_files import StateFile, StateFileWriter, extras_of
from penstock.state.version import FileMerge, Version

EVERY = 4


def choose_merges(
    version: Version, batch: int, slices: Iterable[int]
) -> list[tuple[StateFile, ...]]:
    """Return the groups of state files to merge in this batch, among these slices.

    They belong to the version that the batch started with. The batch does not merge its own
    files, because timers of new layers fire by another rule.
    """
    turn = [slice for slice in slices if (batch + slice) % EVERY == 0]
    chosen = [
        (version.of(slice), merge_count([state_file.bytes for state_file in version.of(slice)]))
        for slice in turn
    ]
    return [state_files[:number] for state_files, number in chosen if number]


def merge_count(sizes: Sequence[int]) -> int:
    """Return the number of newest layers to merge; 0 if none.

    >>> merge_count([1, 3, 3, 30]), merge_count([10, 10, 1000]), merge_count([10, 100])
    (3, 2, 0)
    """
    number, newer = 0, 0
    for place, size in enumerate(sizes):
        if place and size <= 2 * newer:
            number = place + 1
        newer += size
    return number


def merge_files(
    directory: Path,
    layout: StateLayout,
    layers: LayerCache,
    version: Version,
    chosen: Sequence[tuple[StateFile, ...]],
    *,
    watermark: int | None,
    ttl_us: int | None = None,
) -> list[FileMerge]:
    """Merge the chosen state files of each slice into one; all slices share one new file.

    `watermark` is that of this batch: the timers up to it fire in this batch.
    """
    age = Age(ttl_us=ttl_us, watermark=watermark, fired_up_to=watermark)
    opened = [layers.open(state_files) for state_files in chosen]
    writer = StateFileWriter(
        directory, layout, extras_of(layer for some in opened for layer in some)
    )
    try:
        for state_files, some in zip(chosen, opened, strict=True):
            slice = state_files[0].slice
            is_base = state_files[-1] == version.of(slice)[-1]
            writer.write(slice, _merged(some, len(layout.key), age if is_base else None))
        written = {state_file.slice: state_file for state_file in writer.close()}
    except BaseException:
        writer.abort()
        raise
    return [
        FileMerge(state_files=state_files, into=written.get(state_files[0].slice))
        for state_files in chosen
    ]


def _merged(layers: Sequence[SortedLayer], keys: int, age: Age | None) -> Iterator[Chunk]:
    """Yield the rows of the merged layer; expired rows are dropped only from the oldest layer."""
    for chunk in merge(layers, keys):
        left = chunk if age is None else live(chunk, age)
        if len(left):
            yield left
