"""States too large to be put row by row, and a process with little memory that works on one."""

import os
import resource
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.state.factories import Disk

from penstock.state.chunk import Chunk, same
from penstock.state.layout import NEVER
from penstock.state.state_files import StateFileWriter
from penstock.state.version import next_version
from penstock.topics.ddl import parse_fields
from penstock.topics.hashing import Hashes, hash_keys, slice_of, split

KEY = pa.schema(parse_fields("id long"))
NUMBERS = pa.schema(parse_fields("n long"))
TEXTS = pa.schema(parse_fields("text string"))
#: What a process with little memory may use beside what Python and Arrow take.
ROOM = 64 << 20
ROWS_AT_ONCE = 1 << 12
#: So many keys are deleted there, from 0 on.
DELETED = 1000


def numbers(directory: Path, keys: int, slices: int) -> Disk:
    """A state of so many numbers, each 0, in one layer a slice."""
    disk = Disk(directory, KEY, NUMBERS, slices=slices)
    ids = np.arange(keys)
    hashes = hash_keys([pa.array(ids)])
    order = np.argsort(hashes)
    ids, hashes = ids[order], hashes[order]
    bounds = np.searchsorted(slice_of(hashes, slices), np.arange(slices + 1))
    writer = StateFileWriter(directory, disk.layout, [])
    for slice in range(slices):
        part = np.s_[bounds[slice] : bounds[slice + 1]]
        values = pa.array(np.zeros(len(ids[part]), np.int64))
        writer.write(slice, [_chunk(hashes[part], [pa.array(ids[part]), values], disk)])
    disk.version = next_version(disk.version, writer.close())
    return disk


def texts(directory: Path, size: int) -> Disk:
    """One slice of more than so many bytes, written without ever holding it in memory."""
    disk = Disk(directory, KEY, TEXTS)
    ids = np.arange(size // 1000)
    hashes = hash_keys([pa.array(ids)])
    order = np.argsort(hashes)

    def chunks() -> Iterator[Chunk]:
        for start in range(0, len(ids), ROWS_AT_ONCE):
            part = order[start : start + ROWS_AT_ONCE]
            columns = [pa.array(ids[part]), pa.array([text(n) for n in ids[part].tolist()])]
            yield _chunk(hashes[part], columns, disk)

    writer = StateFileWriter(directory, disk.layout, [])
    writer.write(0, chunks())
    disk.version = next_version(disk.version, writer.close())
    return disk


def text(number: int) -> str:
    """The value of a key: a thousand letters."""
    return f"{number:010d}" * 100


def _chunk(hashes: Hashes, columns: list[pa.Array], disk: Disk) -> Chunk:
    rows = pa.RecordBatch.from_arrays(columns, schema=disk.layout.stored)
    size = len(hashes)
    return Chunk(
        hashes=hashes,
        rows=rows,
        gone=same(False, size),
        timers=same(NEVER, size),
        seen=same(NEVER, size),
    )


def count(disk: Disk, ids: pa.Array) -> float:
    """Count some rows by key in one batch over all slices; seconds of CPU."""
    began = time.process_time()
    states = []
    for slice, rows in split(
        pa.record_batch({"id": ids}), hash_keys([ids]), disk.version.slices
    ).items():
        state = disk.state(slice)
        unique = rows["id"].unique()
        found = state.get(unique)["n"].to_numpy(zero_copy_only=False)
        state.put({"id": unique, "n": np.nan_to_num(found).astype(np.int64) + 1})
        states.append(state)
    disk.commit(*states)
    return time.process_time() - began


def work_in_little_memory(directory: Path, pipe: Connection) -> None:
    """Report the limit, wait for a state four times as large, then work on it."""
    os.fsync = lambda _: None  # nobody pulls the plug here
    limit = _data_bytes() + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    pipe.send(limit)
    disk = Disk(directory, KEY, TEXTS)
    disk.version = pipe.recv()
    try:
        bytearray(limit)
    except MemoryError:
        pipe.send("memory is short")
    keys = disk.version.of(0)[0].rows
    ids = np.random.default_rng(0).choice(keys, 5_000, replace=False)
    state = disk.state()
    found = state.get(pa.array(ids))["text"].to_pylist()
    pipe.send((ids, found == [text(number) for number in ids.tolist()]))
    state.put({"id": ids, "text": ["new"] * len(ids)})
    state.delete(pa.array([keys + 1, *range(DELETED)]))
    disk.commit(state)
    disk.commit(disk.state(), merge=[disk.version.of(0)])
    pipe.send(disk.version)
    pipe.send(sum(batch.num_rows for batch in disk.state().scan()))


def _data_bytes() -> int:
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmData" in line
    )
    return int(line.split()[1]) * 1024
