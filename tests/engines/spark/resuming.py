"""What a start finds in a run directory that was left in the middle: read from Spark's own logs."""

import json
from pathlib import Path

from penstock.engines.spark.places import Places
from penstock.engines.spark.records import BatchLog
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.readers import positions


def pending(places: Places, pipeline: Pipeline) -> dict[str, object]:
    """Return how many batches will be run again, and rules that the directory breaks.

    `again`: batches that Spark began and did not commit; `recorded`: those of them whose record
    was there already. A reader must never be ahead of what Spark has committed: retention
    would take rows away that a batch that is run again needs.
    """
    again, recorded, broken = 0, 0, []
    for name, operator in pipeline.operators.items():
        checkpoint = places.checkpoint(name)
        begun, done = _last(checkpoint / "offsets"), _last(checkpoint / "commits")
        if begun is None:
            continue
        if done != begun:
            again += 1
            recorded += BatchLog(places.batches(name)).get(begun) is not None
        committed = _ends(checkpoint / "offsets" / str(done)) if done is not None else {}
        for topic in operator.reads:
            read = positions(places.topic(topic)).get(name, 0)
            if read > committed.get(topic, 0):
                broken.append(f"{name} gave up {topic} before {read}, committed: {committed}")
    return {"again": again, "recorded": recorded, "broken": broken}


def _last(log: Path) -> int | None:
    """The newest batch of one of Spark's logs."""
    numbers = (int(path.name) for path in log.glob("[0-9]*") if path.name.isdecimal())
    return max(numbers, default=None)


def _ends(offsets: Path) -> dict[str, int]:
    """Where a batch ended in each topic: version, metadata, then one line a source."""
    ends: dict[str, int] = json.loads(offsets.read_text().splitlines()[2])["at"]
    return ends
