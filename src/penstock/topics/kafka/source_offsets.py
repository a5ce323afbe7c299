"""Positions of a source: the next offset of each partition, what is lost, what comes next. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import InputError
from penstock.topics.kafka.offset_ranges import Share, cut_shares, limit_ranges, list_ranges

#: Offsets below which a share is not worth a task.
MIN_SHARE_OFFSETS = 1000
#: What to do about offsets that retention has removed before they were read.
LOST_RULES = ("fail", "skip")
#: Keys of an offset that cannot be the names of topics.
_LOST, _TASKS = "#lost", "#tasks"

Positions = Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOffsets:
    """Where a source stands in its topic; as JSON it is Spark's offset."""

    topic: str
    next: Positions = field(default_factory=dict)
    #: Offsets that were lost so far.
    lost: int = 0
    #: Tasks of the batch that ends here: a batch that runs again has the same ones.
    tasks: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, with the partitions under the name of the topic.

        >>> SourceOffsets(topic="orders", next={0: 5}).to_json()
        {'orders': {'0': 5}, '#lost': 0, '#tasks': 1}
        """
        return {**self.latest_json(), _LOST: self.lost, _TASKS: self.tasks}

    def latest_json(self) -> dict[str, Any]:
        """Return the partitions only: the distance of two positions is a number of offsets."""
        return {self.topic: {str(number): at for number, at in sorted(self.next.items())}}

    @classmethod
    def from_json(cls, topic: str, data: Mapping[str, Any]) -> "SourceOffsets":
        """Read what `to_json` returned; `InputError` if it is about another topic."""
        if topic not in data:
            others = sorted(name for name, value in data.items() if isinstance(value, Mapping))
            problem = f"is now {topic!r}, but the checkpoint has read {', '.join(others)}"
            hint = "another topic needs another name of the ingest, or another checkpoint"
            raise InputError("topic", problem, hint)
        positions = {int(number): int(at) for number, at in data[topic].items()}
        return cls(
            topic=topic,
            next=positions,
            lost=int(data.get(_LOST, 0)),
            tasks=int(data.get(_TASKS, 1)),
        )


def plan_next(
    start: SourceOffsets,
    end: Positions,
    find_first: Callable[[], Positions],
    *,
    most: int | None,
    tasks: int | None,
    on_lost: str,
) -> SourceOffsets:
    """Return where the next batch ends; the start if there is nothing to read.

    `end` are the ends that may be read. `find_first` is asked only if there is something to read.
    """
    _check_ends(start, end)
    if not list_ranges(start.next, end):
        return start
    begin, lost = find_begin(start, end, find_first(), on_lost)
    ranges = list_ranges(begin, end)
    if most is not None:
        ranges = limit_ranges(ranges, most)
    stops = {**start.next, **begin, **{part.partition: part.end for part in ranges}}
    wanted = len(end) if tasks is None else tasks
    return replace(start, next=stops, lost=start.lost + lost, tasks=max(1, wanted))


def find_begin(
    start: SourceOffsets, end: Positions, first: Positions, on_lost: str
) -> tuple[dict[int, int], int]:
    """Return where each partition begins, and how many offsets are lost before."""
    begin, lost = {}, 0
    for number in sorted(end):
        at = start.next.get(number, 0)
        # a partition that ends before its first offset has been emptied: nothing is there
        low = min(first.get(number, 0), end[number])
        if at < low:
            if on_lost == "fail":
                raise lost_offsets(start.topic, number, at, low)
            lost += low - at
        begin[number] = max(at, low)
    return begin, lost


def lost_offsets(topic: str, partition: int, at: int, first: int | None) -> InputError:
    """Return the error for offsets that were removed before they were read."""
    until = "" if first is None else f"; the first one there is {first}"
    problem = f"partition {partition}: offset {at} was removed before it was read{until}"
    hint = "lengthen the topic's retention; on_lost='skip' goes on and counts what is lost"
    return InputError(f"topic {topic}", problem, hint)


def _check_ends(start: SourceOffsets, end: Positions) -> None:
    for number, at in start.next.items():
        if number not in end or end[number] < at:
            state = f"it ends at {end[number]}" if number in end else "it is gone"
            problem = f"partition {number}: read up to offset {at}, but {state}"
            hint = "the topic was deleted or made anew: read it under another name"
            raise InputError(f"topic {start.topic}", problem, hint)


def cut_tasks(start: SourceOffsets, end: SourceOffsets) -> tuple[Share, ...]:
    """Return what each task of a batch reads: the same for every attempt at the batch."""
    ranges = list_ranges(start.next, end.next)
    total = sum(part.length for part in ranges)
    if not total:
        return ()
    return cut_shares(ranges, max(1, min(end.tasks, -(-total // MIN_SHARE_OFFSETS))))
