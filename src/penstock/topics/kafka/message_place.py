"""Where the rows of a segment are in Kafka: a partition, and runs of offsets. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class MessageRun(NamedTuple):
    """Messages at consecutive offsets that have equally many rows."""

    offset: int
    messages: int
    #: Rows of each message.
    rows: int


class LocatedMessage(NamedTuple):
    """A message, and the rows of it that are wanted: [low, high) of its own."""

    offset: int
    rows: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """The messages of one segment, in order.

    >>> place = MessagePlace.of(2, offsets=[7, 8, 9, 11], rows=[5, 5, 3, 5])
    >>> place.to_json()
    {'partition': 2, 'runs': [[7, 2, 5], [9, 1, 3], [11, 1, 5]]}
    >>> [(part.offset, part.low, part.high) for part in place.locate(4, 12)]
    [(7, 4, 5), (8, 0, 5), (9, 0, 2)]
    """

    partition: int
    runs: tuple[MessageRun, ...]

    @classmethod
    def of(cls, partition: int, offsets: Sequence[int], rows: Sequence[int]) -> "MessagePlace":
        """Return the place of messages with these offsets and numbers of rows."""
        runs: list[MessageRun] = []
        for offset, count in zip(offsets, rows, strict=True):
            last = runs[-1] if runs else None
            if last and last.rows == count and last.offset + last.messages == offset:
                runs[-1] = last._replace(messages=last.messages + 1)
            else:
                runs.append(MessageRun(offset, 1, count))
        return cls(partition, tuple(runs))

    @property
    def start(self) -> int:
        """The first offset."""
        return self.runs[0].offset

    @property
    def end(self) -> int:
        """The offset after the last message."""
        return self.runs[-1].offset + self.runs[-1].messages

    def locate(self, from_row: int, to_row: int) -> Iterator[LocatedMessage]:
        """Yield the messages that hold rows [from_row, to_row) of the segment."""
        first = 0
        for run in self.runs:
            for number in range(run.messages):
                low, high = max(from_row - first, 0), min(to_row - first, run.rows)
                if low < high:
                    yield LocatedMessage(run.offset + number, run.rows, low, high)
                first += run.rows
                if first >= to_row:
                    return

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return {"partition": self.partition, "runs": [list(run) for run in self.runs]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "MessagePlace":
        """Read what `to_json` wrote."""
        return cls(int(data["partition"]), tuple(MessageRun(*run) for run in data["runs"]))
