"""The offsets at which source batches of a topic end: no older row of the batch follows.

Rows of one source batch, such as all files that an ingest found at once, are in no order of time,
and operators may pass them on in several commits. The last of these commits is complete. If an
operator filters out every row of the last part there is no such commit, and a file says so.
"""

import json
from collections.abc import Iterator

from penstock.errors import DamagedError
from penstock.files.atomic import full_disk, replace
from penstock.topics.port import TopicView

COMPLETE = "complete.json"
VERSION = 1


def complete_ends(topic: TopicView, start: int, end: int) -> Iterator[int]:
    """Yield the offsets in (start, end] at which a source batch ends, in order."""
    if start >= end:
        return
    marked = None
    for commit in topic.commits(start, end):
        if commit.end > end:
            return
        if not commit.is_complete and marked is None:
            marked = marked_end(topic)
        if commit.is_complete or commit.end == marked:
            yield commit.end


def mark_complete(topic: TopicView) -> None:
    """Mark the source batch of the newest commit as complete, unless the commit does so itself."""
    newest = topic.newest
    if newest is None or newest.is_complete or marked_end(topic) == newest.end:
        return
    with full_disk(topic.name):
        data = {"version": VERSION, "end": newest.end}
        replace(topic.directory / COMPLETE, json.dumps(data).encode() + b"\n")


def marked_end(topic: TopicView) -> int:
    """Return the end of the last marked commit; 0 if there is none."""
    try:
        return int(json.loads((topic.directory / COMPLETE).read_bytes())["end"])
    except FileNotFoundError:
        return 0
    except (ValueError, KeyError, TypeError):
        raise DamagedError(topic.name, COMPLETE, "is no offset of a complete batch") from None
