"""Verifies a state: reads every file of a version completely and reports damage."""

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
from penstock.state.mapped_files import open_file, open_layer, same_columns
from penstock.state.sorted_layer import SortedLayer
from penstock.state.state_files import StateFile
from penstock.state.version import Version
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.hashing import hash_keys, slice_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDamage:
    """Damage in one state file."""

    #: Path relative to the directory of the state.
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
    """Return all damage.

    `by` names the key columns that determine the slice: all of them if it is None; if it is
    empty, all rows belong to slice 0. `in_any` allows a key in any slice, as for a broadcast
    input, whose rows every slice may store.
    """
    state_files = sorted(
        (state_file for state_files in version.state_files.values() for state_file in state_files),
        key=lambda state_file: (state_file.file, state_file.first),
    )
    columns = layout.key.names if by is None else list(by)
    owners = None if in_any else _Owners(columns, version.slices)
    return [
        damage
        for _, inside in groupby(state_files, key=lambda state_file: state_file.file)
        for damage in _file(directory, layout, owners, list(inside))
    ]


@dataclass(frozen=True, slots=True)
class _Owners:
    """Computes the slice that each row belongs to."""

    by: Sequence[str]
    slices: int

    def of(self, chunk: Chunk) -> NDArray[np.int64]:
        if not self.by:
            return np.zeros(len(chunk), np.int64)
        return slice_of(hash_keys([chunk.rows.column(name) for name in self.by]), self.slices)


def _file(
    directory: Path, layout: StateLayout, owners: _Owners | None, state_files: Sequence[StateFile]
) -> Iterator[StateDamage]:
    name = f"{SEGMENTS}/{state_files[0].file}"
    try:
        reader = open_file(directory, state_files[0].segment, checked=True)
        same_columns(layout, reader.schema)
    except (DamagedError, InputError) as error:
        problem = error.what if isinstance(error, DamagedError) else error.problem
        yield StateDamage(
            file=name, problem=problem, slices=tuple(state_file.slice for state_file in state_files)
        )
        return
    for state_file in state_files:
        try:
            problem = _problem(
                open_layer(reader, state_file, directory), layout, owners, state_file
            )
        except DamagedError as error:
            problem = error.what
        if problem:
            yield StateDamage(file=name, problem=problem, slices=(state_file.slice,))


def _problem(
    layer: SortedLayer, layout: StateLayout, owners: _Owners | None, state_file: StateFile
) -> str:
    """Return the first problem of a layer, or an empty string."""
    if any(before.hashes[-1] >= after.hashes[0] for before, after in pairwise(layer.chunks)):
        return f"slice {state_file.slice}: the record batches are not sorted by hash"
    for chunk in layer.chunks:
        keys = chunk.rows.columns[: len(layout.key)]
        if (chunk.hashes[1:] < chunk.hashes[:-1]).any():
            return f"slice {state_file.slice}: the rows are not sorted by hash"
        if (wrong := np.count_nonzero(hash_keys(keys) != chunk.hashes)) > 0:
            return f"slice {state_file.slice}: {wrong} rows have another hash than their keys"
        if owners and (wrong := np.count_nonzero(owners.of(chunk) != state_file.slice)) > 0:
            return f"slice {state_file.slice}: {wrong} rows belong to other slices"
        if (twice := len(chunk) - len(winners(chunk.hashes, keys, last=True))) > 0:
            return f"slice {state_file.slice}: {twice} keys occur twice"
        if not _is_ordered(chunk):
            return f"slice {state_file.slice}: the index of timers is wrong"
    return ""


def _is_ordered(chunk: Chunk) -> bool:
    if chunk.order is None:
        return True
    if not np.array_equal(np.sort(chunk.order), np.arange(len(chunk))):
        return False
    timers = chunk.timers[chunk.order]
    return bool((timers[1:] >= timers[:-1]).all())
