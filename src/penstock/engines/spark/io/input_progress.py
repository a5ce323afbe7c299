"""The event-time progress of an operator's inputs, from their commits and its records."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.microbatch.event_time import ColumnTime, EventTimeProgress, advance_progress
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.state_versions import LOOK_BACK
from penstock.topics.embedded.commit import Commit
from penstock.topics.embedded.completeness import complete_ends
from penstock.topics.embedded.segment import later_times, newest_times
from penstock.topics.port import ReadableTopic


class InputState(NamedTuple):
    """The progress of an input at an offset."""

    progress: EventTimeProgress
    #: Whether the last source batch continues after the offset.
    is_open: bool = False


class InputProgress:
    """The progress of each input at the offsets of an operator."""

    def __init__(
        self,
        topics: Mapping[str, ReadableTopic],
        log: BatchLog,
        idle_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics, self._log, self._idle_s, self._clock = topics, log, idle_s, clock
        #: The end of each topic, and when it was first seen: a stop is no time without rows.
        self._grown = {name: (topic.end, clock()) for name, topic in topics.items()}
        #: The last offset of each input, and the progress there.
        self._known: dict[str, tuple[int, InputState]] = {}

    def at(self, name: str, offset: int) -> InputState:
        """Return the progress of an input at an offset."""
        known = self._known.get(name)
        if known is not None and known[0] == offset:
            return known[1]
        return self._read_recorded(name, offset)

    def _read_recorded(self, name: str, offset: int) -> InputState:
        newest = self._log.last()
        for number in range(newest.batch, newest.batch - LOOK_BACK, -1) if newest else ():
            record = self._log.get(number)
            if record is not None and record.end.get(name) == offset:
                latest = record.latest.get(name)  # old records have nothing else
                progress = {**self._columns(name, latest), **record.progress.get(name, {})}
                return InputState(progress, name in record.open_inputs)
        return InputState(self._columns(name))

    def _columns(self, name: str, latest: int | None = None) -> EventTimeProgress:
        schema = self._topics[name].schema
        return {c.name: ColumnTime(latest) for c in schema if pa.types.is_timestamp(c.type)}

    def read(self, name: str, start: int, end: int) -> InputState:
        """Return the progress of an input after the rows [start, end)."""
        progress, is_open = self.at(name, start)
        topic = self._topics[name]
        if start < end:
            ends, is_open = {*complete_ends(topic, start, end)}, True
            for commit in topic.commits(start, end):
                if commit.end <= end:
                    is_open = commit.end not in ends
                    progress = advance_progress(
                        progress,
                        _find_newest(topic, commit),
                        commit.event_times,
                        is_complete=not is_open,
                    )
                else:
                    is_open = True
        state = InputState(progress, is_open)
        self._known[name] = (end, state)
        return state

    def idle_inputs(self, ends: Mapping[str, int]) -> Collection[str]:
        """Return the inputs that are read completely and have had no new row for `idle_s`.

        Only time since this start counts, and changes of the machine's clock do not.
        """
        if self._idle_s is None:
            return ()
        now = self._clock()
        for name, topic in self._topics.items():
            if topic.end != self._grown[name][0]:
                self._grown[name] = topic.end, now
        return [
            name
            for name, (end, since) in self._grown.items()
            if end <= ends.get(name, 0) and now - since > self._idle_s
        ]

    def find_whole_end(self, name: str, start: int, end: int) -> int | None:
        """Return the last offset in (start, end] at which a source batch ends; None without."""
        return max(complete_ends(self._topics[name], start, end), default=None)

    def find_next_whole_end(self, name: str, start: int, end: int) -> int:
        """Return the first offset in (start, end] at which a source batch ends, or the start."""
        return next(complete_ends(self._topics[name], start, end), start)


def _find_newest(topic: ReadableTopic, commit: Commit) -> Mapping[str, int]:
    """Return the newest times of a commit; reads segments of older versions for them."""
    newest: Mapping[str, int] = FrozenDict()
    for segment in commit.segments:
        newest = later_times(newest, segment.newest or {})
    if any(segment.newest is None for segment in commit.segments):
        times = [c.name for c in topic.schema if pa.types.is_timestamp(c.type)]
        for batch in topic.read(commit.first, commit.end, times):
            newest = later_times(newest, newest_times(batch))
    return newest
