"""Parts of a journal: their file names, their size, and how many are kept."""

from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError

MB = 1_000_000
#: About five hours of ticks with three operators; a start reads at most two parts.
PART_BYTES = 8 * MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The size of a part, and how many full parts are kept."""

    part_bytes: int = PART_BYTES
    older_parts: int = 9

    @classmethod
    def of(cls, total_mb: float | None) -> "Limits":
        """Return the limits for a journal of about `total_mb`.

        >>> Limits.of(100), Limits.of(1)
        (Limits(part_bytes=8000000, older_parts=11), Limits(part_bytes=500000, older_parts=1))
        """
        if total_mb is None:
            return cls()
        if not 1 <= total_mb < 1e9:
            raise InputError("--journal-mb", f"must be at least 1, got {total_mb:g}")
        part_bytes = min(PART_BYTES, int(total_mb * MB / 2))
        return cls(part_bytes=part_bytes, older_parts=max(1, int(total_mb * MB / part_bytes) - 1))


DEFAULT_LIMITS = Limits()


def part_path(path: Path, number: int) -> Path:
    """Return the file of an older part.

    >>> part_path(Path("journal.jsonl"), 3).name
    'journal.000003.jsonl'
    """
    return path.with_name(f"{path.stem}.{number:06d}{path.suffix}")


def older_parts(path: Path) -> list[Path]:
    """Return the files of older parts, oldest first."""
    parts = path.parent.glob(f"{path.stem}.[0-9]*{path.suffix}")
    named = [part for part in parts if part.name.split(".")[1].isdecimal()]
    return sorted(named, key=lambda part: int(part.name.split(".")[1]))
