"""Reads server-sent events: the format of streams of notifications."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event; `id` is the last id of the stream, also if this event had none."""

    type: str
    id: str
    data: str


def parse_events(parts: Iterable[str], last_id: str = "") -> Iterator[StreamEvent]:
    r"""Yield the events of a stream that comes in parts; an incomplete one at the end is dropped.

    >>> [event.data for event in parse_events(["id: 1\nda", "ta: a\n\ndata: b"])]
    ['a']
    """
    kind = ""
    data: list[str] = []
    for line in _split_lines(parts):
        if not line:
            if data:
                yield StreamEvent(type=kind or "message", id=last_id, data="\n".join(data))
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last_id = value


def _split_lines(parts: Iterable[str]) -> Iterator[str]:
    # str.splitlines would also split at characters that data may have
    rest = ""
    for part in parts:
        rest += part
        if "\n" in part or "\r" in part:
            # a carriage return at the end may be half of a line end
            half_end = "\r" if rest.endswith("\r") else ""
            text = rest[: len(rest) - len(half_end)]
            *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            rest += half_end
            yield from lines
