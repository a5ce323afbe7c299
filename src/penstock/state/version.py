"""The files that make up the state of an operator after a batch. Pure values; format 1."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.state.state_files import StateFile
from penstock.topics.embedded.segment import Segment

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The state files of each slice, newest first; a slice without files is empty."""

    #: The number of slices; it never changes.
    slices: int
    state_files: Mapping[int, tuple[StateFile, ...]] = field(default_factory=FrozenDict)
    #: The watermark of the batch that made this version; None before there is any event time.
    watermark: int | None = None

    def of(self, slice: int) -> tuple[StateFile, ...]:
        """Return the state files of a slice."""
        return self.state_files.get(slice, ())

    def token(self, slice: int, times: Iterable[int | None] = ()) -> str:
        """Return a name of the content of a slice; the same token means the same rows.

        Files have unique names and never change. `times` are those that decide which rows have
        expired, if any can.
        """
        files = [f"{each.file}:{each.first}:{each.batches}" for each in self.of(slice)]
        return "/".join([str(slice), *files, *(f"@{time}" for time in times)])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; each file is listed once, however many slices it holds."""
        segments = {
            state_file.file: state_file.segment
            for state_files in self.state_files.values()
            for state_file in state_files
        }
        names = sorted(segments)
        place = {name: number for number, name in enumerate(names)}
        return {
            "format": FORMAT,
            "slices": self.slices,
            "watermark": self.watermark,
            "segments": [segments[name].to_json() for name in names],
            "runs": {
                str(slice): [
                    [
                        place[state_file.file],
                        state_file.first,
                        state_file.batches,
                        state_file.rows,
                        state_file.bytes,
                        state_file.at,
                    ]
                    for state_file in state_files
                ]
                for slice, state_files in sorted(self.state_files.items())
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Version":
        """Read what `to_json` wrote; `ValueError` if it is of another format."""
        if data.get("format") != FORMAT:
            raise ValueError(f"cannot read format {data.get('format')} of a state, only {FORMAT}")
        segments = [Segment.from_json(segment) for segment in data["segments"]]
        state_files = {
            int(slice): tuple(
                StateFile(
                    segment=segments[place],
                    slice=int(slice),
                    first=first,
                    batches=batches,
                    rows=rows,
                    bytes=size,
                    at=at,
                )
                for place, first, batches, rows, size, at in entries
            )
            for slice, entries in data["runs"].items()
        }
        return cls(
            slices=data["slices"], state_files=FrozenDict(state_files), watermark=data["watermark"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMerge:
    """Neighbouring state files of a slice, and the one that replaces them; None if it is empty."""

    state_files: tuple[StateFile, ...]
    into: StateFile | None


def next_version(
    version: Version,
    new: Iterable[StateFile] = (),
    merged: Iterable[FileMerge] = (),
    watermark: int | None = None,
) -> Version:
    """Return the version after a batch: merged files replaced, new ones on top."""
    state_files = dict(version.state_files)
    for change in merged:
        slice = change.state_files[0].slice
        state_files[slice] = _replace_files(state_files.get(slice, ()), change)
    for state_file in new:
        state_files[state_file.slice] = (state_file, *state_files.get(state_file.slice, ()))
    kept = {slice: left for slice, left in sorted(state_files.items()) if left}
    return replace(version, state_files=FrozenDict(kept), watermark=watermark)


def file_names(version: Version) -> frozenset[str]:
    """Return the names of all files in use; others may be removed."""
    return frozenset(
        state_file.file
        for state_files in version.state_files.values()
        for state_file in state_files
    )


def _replace_files(state_files: tuple[StateFile, ...], change: FileMerge) -> tuple[StateFile, ...]:
    size = len(change.state_files)
    for start in range(len(state_files) - size + 1):
        if state_files[start : start + size] == change.state_files:
            into = () if change.into is None else (change.into,)
            return (*state_files[:start], *into, *state_files[start + size :])
    raise ValueError(f"slice {change.state_files[0].slice} has no such state files in a row")
