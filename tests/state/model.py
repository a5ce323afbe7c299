"""A state as a plain dictionary: slow, obvious, and written without a look at the real one."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

Key = tuple[Any, ...]


@dataclass
class Row:
    """What is known of a key."""

    key: Key
    values: tuple[Any, ...]
    timer: int | None
    seen: int | None
    told: bool = False


@dataclass
class Model:
    """One slice. A batch begins with `begin`."""

    ttl_us: int | None
    rows: dict[Hashable, Row] = field(default_factory=dict)
    watermark: int | None = None
    before: int | None = None
    now: int | None = None

    def begin(self, watermark: int | None, now: int | None) -> None:
        self.before, self.watermark = self.watermark, watermark
        times = [time for time in (now, watermark) if time is not None]
        self.now = max(times) if times else None

    def put(self, key: Key, values: tuple[Any, ...], timer: int | None) -> None:
        self.rows[name(key)] = Row(key, values, timer, self.now)

    def delete(self, key: Key) -> None:
        self.rows.pop(name(key), None)

    def get(self, key: Key) -> tuple[Any, ...] | None:
        row = self.rows.get(name(key))
        return None if row is None or self._is_over(row) else row.values

    def due(self) -> list[Row]:
        """Rows to tell now; each once."""
        found = [row for row in self.rows.values() if self._is_due(row)]
        for row in found:
            row.told = True
        return sorted(found, key=lambda row: row.timer or 0)

    def is_due(self) -> bool:
        return any(map(self._is_due, self.rows.values()))

    def all(self) -> dict[Hashable, tuple[Any, ...]]:
        return {key: row.values for key, row in self.rows.items() if not self._is_over(row)}

    def _is_due(self, row: Row) -> bool:
        if row.timer is None or row.told or self.watermark is None or self._is_over(row):
            return False
        return row.timer <= self.watermark

    def _is_over(self, row: Row) -> bool:
        if self.ttl_us is None or self.watermark is None or row.seen is None:
            return False
        waits = row.timer is not None and (self.before is None or row.timer > self.before)
        return row.seen + self.ttl_us <= self.watermark and not waits


def name(key: Sequence[Any]) -> Hashable:
    """Keys that are one key have one name: all zeros, all that are no numbers."""
    return tuple("nan" if isinstance(part, float) and math.isnan(part) else part for part in key)
