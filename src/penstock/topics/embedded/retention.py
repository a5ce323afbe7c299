"""Retention: rows are kept by time, by size, and until the slowest reader has read them."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import DamagedError, InputError
from penstock.files.atomic import TEMPORARY
from penstock.topics.embedded.commit import COMMITS, Commit
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.segment import SEGMENTS

if TYPE_CHECKING:
    from penstock.topics.embedded.topic import Topic

#: A segment without a commit may still be published, but not after this time.
MIN_LEFTOVER_AGE_S = 60.0

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_BYTES = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?", re.IGNORECASE)
_READ, _ALL, _UNREAD = "read", "everything", "even unread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which commits may be removed: whole commits, oldest first, never the newest.

    Without limits, commits that every registered reader has read are removed. With limits, commits
    beyond one of them are removed, except unread ones, unless `unread` is False.
    """

    seconds: float | None = None
    bytes: int | None = None
    #: Keep what a registered reader has not read.
    unread: bool = True

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit of time or size."""
        return self.seconds is not None or self.bytes is not None

    def exceeds(self, commit: Commit, end_bytes: int, now: float) -> bool:
        """Whether a commit is beyond one of the limits."""
        too_old = self.seconds is not None and commit.at < now - self.seconds
        return too_old or (self.bytes is not None and end_bytes - commit.bytes_before > self.bytes)

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Retention":
        """Read what `to_json` wrote."""
        return cls(seconds=data["seconds"], bytes=data["bytes"], unread=data["unread"])

    def __str__(self) -> str:
        """Return the text that `parse_retention` reads."""
        parts = [] if self.seconds is None else [_amount(self.seconds, _SECONDS)]
        parts += [] if self.bytes is None else [_amount(self.bytes, _BYTES).upper()]
        if not parts:
            return _READ if self.unread else _ALL
        return ", ".join(parts if self.unread else [*parts, _UNREAD])


def parse_retention(text: str) -> Retention:
    """Parse limits of time and size, `read`, or `everything`.

    >>> parse_retention("10 minutes, 2 GB")
    Retention(seconds=600.0, bytes=2000000000, unread=True)
    >>> str(parse_retention("90 s, even unread")), str(parse_retention("read"))
    ('90 seconds, even unread', 'read')
    """
    if text.strip().lower() in (_READ, _ALL):
        return Retention(unread=text.strip().lower() == _READ)
    limits: dict[str, Any] = {}
    for part in map(str.strip, text.split(",")):
        match = _AMOUNT.fullmatch(part)
        unit = match[2].lower() if match else ""
        name, size = _unit(unit)
        if part.lower() == _UNREAD:
            limits["unread"] = False
        elif match and size and name not in limits:
            amount = float(match[1]) * size
            limits[name] = amount if name == "seconds" else round(amount)
        else:
            hint = "write for example: read, 10 minutes, 2 GB, '1 hour, 500 MB, even unread'"
            raise InputError("keep", f"cannot be read: {text!r}", hint)
    if "seconds" not in limits and "bytes" not in limits:
        raise InputError("keep", f"has no limit: {text!r}", f"or write {_ALL!r}")
    return Retention(**limits)


def trim(topic: "Topic", now: float) -> int:
    """Remove rows by the topic's retention; return their number."""
    topic.refresh()
    kept, limit = topic.retention, 0
    read = min(positions(topic.directory).values(), default=None) if kept.unread else None
    if kept.is_limited:
        for commit in topic.oldest_first():
            if not kept.exceeds(commit, topic.end_bytes, now):
                break
            limit = commit.end
    elif read is not None:
        limit = read
    return topic.remove_before(limit if read is None else min(limit, read))


def remove_leftovers(topic: "Topic", now: float) -> int:
    """Remove files that a killed process left unpublished; return their number.

    Call it only while no process is about to publish: segments that are older than a minute and
    belong to no commit are removed.
    """
    files = [
        *(topic.directory / SEGMENTS).iterdir(),
        *(topic.directory / COMMITS).glob(f".*{TEMPORARY}"),
    ]
    old = [path for path in files if _age_s(path, now) > MIN_LEFTOVER_AGE_S]
    topic.refresh()
    try:
        named = {segment.file for commit in topic.oldest_first() for segment in commit.segments}
    except DamagedError:  # the segments of that commit are unknown
        return 0
    leftovers = [path for path in old if path.name not in named]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def _age_s(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:  # removed meanwhile
        return 0.0


def _unit(unit: str) -> tuple[str, int]:
    for name, units in (("seconds", _SECONDS), ("bytes", _BYTES)):
        for known, size in units.items():
            if unit and (unit == known or (name == "seconds" and known.startswith(unit))):
                return name, size
    return "", 0


def _amount(value: float, units: Mapping[str, int]) -> str:
    unit, size = max(
        (item for item in units.items() if value % item[1] == 0 or item[1] in (1, 1000)),
        key=lambda item: item[1],
    )
    number = value / size
    shown = int(number) if number == int(number) else number
    return f"{shown} {unit}{'s' if units is _SECONDS and number != 1 else ''}"
