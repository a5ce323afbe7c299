"""Which runs make up the state of an operator after a batch. Pure values; format 1."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.state.state_files import StateFile
from penstock.topics.embedded.segment import Segment

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The runs of each slice, newest first; a slice without any has no state."""

    #: How many slices there are; that never changes.
    slices: int
    runs: Mapping[int, tuple[StateFile, ...]] = field(default_factory=FrozenDict)
    #: The watermark of the batch that made this version; None before there is any event time.
    watermark: int | None = None

    def of(self, slice: int) -> tuple[StateFile, ...]:
        """The runs of a slice."""
        return self.runs.get(slice, ())

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary; each file stands there once, whatever lies in it."""
        segments = {run.file: run.segment for runs in self.runs.values() for run in runs}
        names = sorted(segments)
        place = {name: number for number, name in enumerate(names)}
        return {
            "format": FORMAT,
            "slices": self.slices,
            "watermark": self.watermark,
            "segments": [segments[name].to_json() for name in names],
            "runs": {
                str(slice): [
                    [place[run.file], run.first, run.batches, run.rows, run.bytes, run.at]
                    for run in runs
                ]
                for slice, runs in sorted(self.runs.items())
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Version":
        """Read what `to_json` wrote; `ValueError` if it is of another format."""
        if data.get("format") != FORMAT:
            raise ValueError(f"cannot read format {data.get('format')} of a state, only {FORMAT}")
        segments = [Segment.from_json(segment) for segment in data["segments"]]
        runs = {
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
        return cls(slices=data["slices"], runs=FrozenDict(runs), watermark=data["watermark"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Neighbouring runs of a slice that became one, or none if nothing of them is left."""

    runs: tuple[StateFile, ...]
    into: StateFile | None


def after(
    version: Version,
    new: Iterable[StateFile] = (),
    merged: Iterable[Merged] = (),
    watermark: int | None = None,
) -> Version:
    """Return the version that a batch leaves: merged runs replaced, new ones on top."""
    runs = dict(version.runs)
    for change in merged:
        slice = change.runs[0].slice
        runs[slice] = _replaced(runs.get(slice, ()), change)
    for run in new:
        runs[run.slice] = (run, *runs.get(run.slice, ()))
    kept = {slice: left for slice, left in sorted(runs.items()) if left}
    return replace(version, runs=FrozenDict(kept), watermark=watermark)


def files(version: Version) -> frozenset[str]:
    """Return the files that are needed; any other may be removed."""
    return frozenset(run.file for runs in version.runs.values() for run in runs)


def _replaced(runs: tuple[StateFile, ...], change: Merged) -> tuple[StateFile, ...]:
    size = len(change.runs)
    for start in range(len(runs) - size + 1):
        if runs[start : start + size] == change.runs:
            into = () if change.into is None else (change.into,)
            return (*runs[:start], *into, *runs[start + size :])
    raise ValueError(f"slice {change.runs[0].slice} has no such runs beside each other")
