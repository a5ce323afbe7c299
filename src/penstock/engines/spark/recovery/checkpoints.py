"""Spark's checkpoint of a query: batches, offsets, partitions.

Spark writes the offsets of a batch before it runs, and its commit afterwards. It does not wait
until either is on the disk, so after a power failure the newest files may be missing or empty.
"""

import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.files.atomic import replace, sync_directory

PARTITIONS = "spark.sql.shuffle.partitions"
OFFSETS, COMMITS, SOURCES, STATE = "offsets", "commits", "sources", "state"
METADATA = "metadata"
_WATERMARK, _NEXT_WATERMARK = "batchWatermarkMs", "nextBatchWatermarkMs"
_LOG_OFFSET = "logOffset"
#: Files of one version of a state: 7.changelog, 7.zip; with a name behind it in newer layouts.
_VERSION = re.compile(r"(\d+)(?:_[^.]*)?\.(?:changelog|zip|delta|snapshot)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBatch:
    """A batch in Spark's offset log."""

    number: int
    #: The number of partitions of the state.
    partitions: int
    #: The end of the batch by topic.
    ends: Mapping[str, int] = field(default_factory=dict)
    planned_at: float = 0.0
    #: In microseconds; 0 without a watermark.
    watermark: int = 0
    is_committed: bool = False


def read_last_batch(checkpoint: Path) -> PlannedBatch | None:
    """Return the newest batch that was planned; None if there is none."""
    numbers = list_batches(checkpoint, OFFSETS)
    return read_planned_batch(checkpoint, numbers[-1]) if numbers else None


def read_committed_ends(checkpoint: Path) -> Mapping[str, int]:
    """Return the end of the newest committed batch by topic; empty if there is none."""
    numbers = list_batches(checkpoint, COMMITS)
    return read_ends(read_log(checkpoint, OFFSETS, numbers[-1])) if numbers else {}


def read_planned_batch(checkpoint: Path, number: int) -> PlannedBatch | None:
    """Return a batch by its number; None if there is none."""
    path = checkpoint / OFFSETS / str(number)
    try:
        text, planned_at = path.read_text(encoding="utf-8"), path.stat().st_mtime
    except FileNotFoundError:
        return None
    _, metadata, *_ = text.splitlines()
    about = json.loads(metadata)
    return PlannedBatch(
        number=number,
        partitions=int(about["conf"][PARTITIONS]),
        watermark=read_watermark_ms(text) * 1000,
        ends=read_ends(text),
        planned_at=planned_at,
        is_committed=(checkpoint / COMMITS / str(number)).exists(),
    )


def rename_topics_in_log(text: str, names: Mapping[str, str]) -> str:
    """Return a batch of Spark's offset log with renamed topics.

    Offsets of other sources have no `at` and stay unchanged.

    >>> rename_topics_in_log('v1\\n{}\\n{"at": {"a": 3}, "skips": {}}', {"a": "b"})
    'v1\\n{}\\n{"at": {"b": 3}, "skips": {}}'
    """
    head, offsets = text.split("\n")[:2], text.split("\n")[2:]
    return "\n".join([*head, *(_rename_in_offset(line, names) for line in offsets)])


def _rename_in_offset(line: str, names: Mapping[str, str]) -> str:
    try:
        offset = json.loads(line)
    except ValueError:  # a dash, or the form of another source
        return line
    if not isinstance(offset, dict) or not isinstance(offset.get("at"), dict):
        return line
    for key, value in offset.items():
        if isinstance(value, dict):
            offset[key] = {names.get(topic, topic): inner for topic, inner in value.items()}
    return json.dumps(offset)


def read_ends(offsets: str) -> dict[str, int]:
    """Return the end of a batch by topic; external streams have no topics."""
    return {topic: end for line in offsets.splitlines()[2:] for topic, end in _read_ends(line)}


def _read_ends(line: str) -> Iterator[tuple[str, int]]:
    """Yield the ends in one line; a dash is a source without rows."""
    offset: Any = json.loads(line) if line != "-" else None
    yield from offset.get("at", {}).items() if isinstance(offset, dict) else ()


def read_watermark_ms(offsets: str) -> int:
    """Return the watermark at the begin of a batch."""
    return int(json.loads(offsets.splitlines()[1]).get(_WATERMARK, 0))


def read_partitions(offsets: str) -> int:
    """Return the number of partitions of the state of a batch."""
    return int(json.loads(offsets.splitlines()[1])["conf"][PARTITIONS])


# --- the two logs: a file for each batch


def list_batches(checkpoint: Path, log: str) -> list[int]:
    """Return the batches of one of the two logs, in order."""
    names = (path.name for path in (checkpoint / log).glob("[0-9]*"))
    return sorted(int(name) for name in names if name.isdecimal())


def read_log(checkpoint: Path, log: str, batch: int) -> str:
    """Return the text of a batch; empty if it is missing, cut short or damaged."""
    try:
        text = (checkpoint / log / str(batch)).read_text(encoding="utf-8")
        version, metadata, *offsets = text.splitlines()
        is_whole = version.startswith("v") and isinstance(json.loads(metadata), dict)
        for offset in offsets:
            is_whole = is_whole and (offset == "-" or json.loads(offset) is not None)
    except (FileNotFoundError, ValueError):
        return ""
    return text if is_whole and (offsets or log == COMMITS) else ""


def write_log(checkpoint: Path, log: str, batch: int, text: str) -> None:
    """Write the file of a batch as Spark does, and sync it to disk."""
    path = checkpoint / log / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    _crc_path(path).unlink(missing_ok=True)
    replace(path, text.encode())
    sync_directory(path.parent)


def remove_log(checkpoint: Path, log: str, batch: int) -> None:
    """Remove the file of a batch, as if Spark had not reached it."""
    path = checkpoint / log / str(batch)
    path.unlink(missing_ok=True)
    _crc_path(path).unlink(missing_ok=True)


def write_metadata(checkpoint: Path) -> None:
    """Write a new query id, as Spark does at the first start; nothing else refers to it."""
    path = checkpoint / METADATA
    _crc_path(path).unlink(missing_ok=True)
    replace(path, json.dumps({"id": str(uuid.uuid4())}).encode())
    sync_directory(path.parent)


def format_commit(next_watermark_ms: int) -> str:
    """Return the text that Spark writes when a batch is committed."""
    return "v1\n" + json.dumps({_NEXT_WATERMARK: next_watermark_ms}, separators=(",", ":"))


def _crc_path(path: Path) -> Path:
    """Return the path of Hadoop's checksum of a file."""
    return path.with_name(f".{path.name}.crc")


# --- sources and state


def find_missing_sources(checkpoint: Path, offsets: str) -> list[str]:
    """Return the missing entries of source logs, such as `sources/*/7`, that a batch needs."""
    lines = [json.loads(line) for line in offsets.splitlines()[2:] if line != "-"]
    numbers = [
        line[_LOG_OFFSET] for line in lines if isinstance(line, dict) and _LOG_OFFSET in line
    ]
    names = [f"{SOURCES}/*/{number}" for number in numbers if number >= 0]
    return [name for name in names if not _has_entry(checkpoint, name)]


def _has_entry(checkpoint: Path, name: str) -> bool:
    paths = [*checkpoint.glob(name), *checkpoint.glob(f"{name}.compact")]
    return any(path.is_file() and path.stat().st_size > 0 for path in paths)


def find_state_versions(checkpoint: Path) -> dict[Path, set[int]]:
    """Return the versions of Spark's own state by directory of a partition."""
    versions: dict[Path, set[int]] = {}
    for path in (checkpoint / STATE).rglob("[0-9]*"):
        if named := _VERSION.fullmatch(path.name):
            versions.setdefault(path.parent, set()).add(int(named[1]))
    return versions


def has_state_version(checkpoint: Path, version: int, partitions: int) -> bool:
    """Whether every partition of a state has the version that a batch begins with."""
    if version == 0:
        return True
    root, parts = checkpoint / STATE, find_state_versions(checkpoint)
    current = [d for d in parts if int(d.relative_to(root).parts[1]) < partitions]
    numbers = {d.relative_to(root).parts[1] for d in current}
    return len(numbers) == partitions and all(version in parts[d] for d in current)


def remove_state_after(checkpoint: Path, version: int) -> None:
    """Remove the versions of batches that Spark does not know (any more).

    Such a batch may get other rows, and its old state would be wrong.
    """
    for directory in find_state_versions(checkpoint):
        for path in [*directory.glob("[0-9]*"), *directory.glob(".[0-9]*.crc")]:
            named = _VERSION.fullmatch(path.name.removeprefix(".").removesuffix(".crc"))
            if named and int(named[1]) > version:
                path.unlink(missing_ok=True)


# --- durability


def sync_batch(checkpoint: Path, batch: int) -> None:
    """Sync the files to disk that Spark has written for a batch before its commit.

    The batch record is written after that, so a power failure cannot leave Spark's checkpoint
    behind the record.
    """
    sources = [d for d in (checkpoint / SOURCES).glob("*") if d.is_dir()]
    directories = (d for depth in ("*/*", "*/*/*") for d in (checkpoint / STATE).glob(depth))
    states = [
        path
        for directory in directories
        for name in (f"{batch + 1}.changelog", f"{batch + 1}.zip")
        if (path := directory / name).exists()
    ]
    _sync([checkpoint / OFFSETS / str(batch), *filter(None, map(_find_newest, sources)), *states])


def sync_newest(checkpoint: Path, log: str) -> None:
    """Sync the newest file of one of the two logs to disk."""
    _sync(filter(None, [_find_newest(checkpoint / log)]))


def _find_newest(directory: Path) -> Path | None:
    numbered = [path for path in directory.glob("[0-9]*") if path.stem.isdecimal()]
    return max(numbered, key=lambda path: int(path.stem), default=None)


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):  # no checkpoint, or an old batch
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            sync_directory(path.parent)
