"""Is the state as it was written? Reads every file of a version from its first byte to its last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DamagedError, InputError
from penstock.state.chunk import Chunk
from penstock.state.keys import winners
from penstock.state.layout import StateLayout
from penstock.state.mapped_files import open_file, open_run, same_columns
from penstock.state.sorted_layer import SortedLayer
from penstock.state.state_files import StateFile
from penstock.state.version import Version
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.hashing import hash_keys, slice_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDamage:
    """Something in a file that is not as it was written."""

    #: Its place in the directory of the state.
    file: str
    problem: str
    #: The slices that cannot be trusted.
    slices: tuple[int, ...]


def check(
    directory: Path,
    layout: StateLayout,
    version: Version,
    by: Sequence[str] | None = None,
    *,
    in_any: bool = False,
) -> list[StateDamage]:
    """Return everything that is damaged.

    `by` are the columns of the key that decide the slice, all if it is left out; without any,
    all rows are in slice 0. `in_any` says that a key may be in any slice, as with a broadcast
    input, whose rows every slice may remember.
    """
    runs = sorted(
        (run for runs in version.runs.values() for run in runs),
        key=lambda run: (run.file, run.first),
    )
    columns = layout.key.names if by is None else list(by)
    owners = None if in_any else _Owners(columns, version.slices)
    return [
        damage
        for _, inside in groupby(runs, key=lambda run: run.file)
        for damage in _file(directory, layout, owners, list(inside))
    ]


@dataclass(frozen=True, slots=True)
class _Owners:
    """Which slice the rows belong to."""

    by: Sequence[str]
    slices: int

    def of(self, chunk: Chunk) -> NDArray[np.int64]:
        if not self.by:
            return np.zeros(len(chunk), np.int64)
        return slice_of(hash_keys([chunk.rows.column(name) for name in self.by]), self.slices)


def _file(
    directory: Path, layout: StateLayout, owners: _Owners | None, runs: Sequence[StateFile]
) -> Iterator[StateDamage]:
    name = f"{SEGMENTS}/{runs[0].file}"
    try:
        reader = open_file(directory, runs[0].segment, checked=True)
        same_columns(layout, reader.schema)
    except (DamagedError, InputError) as error:
        problem = error.what if isinstance(error, DamagedError) else error.problem
        yield StateDamage(file=name, problem=problem, slices=tuple(run.slice for run in runs))
        return
    for run in runs:
        try:
            problem = _problem(open_run(reader, run, directory), layout, owners, run)
        except DamagedError as error:
            problem = error.what
        if problem:
            yield StateDamage(file=name, problem=problem, slices=(run.slice,))


def _problem(
    level: SortedLayer, layout: StateLayout, owners: _Owners | None, run: StateFile
) -> str:
    """What is wrong with a level; nothing if all is well."""
    if any(before.hashes[-1] >= after.hashes[0] for before, after in pairwise(level.chunks)):
        return f"slice {run.slice}: the record batches are not sorted by hash"
    for chunk in level.chunks:
        keys = chunk.rows.columns[: len(layout.key)]
        if (chunk.hashes[1:] < chunk.hashes[:-1]).any():
            return f"slice {run.slice}: the rows are not sorted by hash"
        if (wrong := np.count_nonzero(hash_keys(keys) != chunk.hashes)) > 0:
            return f"slice {run.slice}: {wrong} rows have another hash than their keys"
        if owners and (wrong := np.count_nonzero(owners.of(chunk) != run.slice)) > 0:
            return f"slice {run.slice}: {wrong} rows belong to other slices"
        if (twice := len(chunk) - len(winners(chunk.hashes, keys, last=True))) > 0:
            return f"slice {run.slice}: {twice} keys are there twice"
        if not _is_ordered(chunk):
            return f"slice {run.slice}: the index of timers is wrong"
    return ""


def _is_ordered(chunk: Chunk) -> bool:
    if chunk.order is None:
        return True
    if not np.array_equal(np.sort(chunk.order), np.arange(len(chunk))):
        return False
    timers = chunk.timers[chunk.order]
    return bool((timers[1:] >= timers[:-1]).all())
