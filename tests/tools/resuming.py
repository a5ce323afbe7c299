"""What a start finds in a run directory that was left in the middle: read from Spark's own logs."""

import json
from pathlib import Path

from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.readers import positions


def run_again(layout: RunLayout, operator: str) -> dict[str, int]:
    """Tell whether Spark has begun a batch that it has not committed, and so will run again.

    `again`: there is one; `recorded`: its record is there already.
    """
    checkpoint = layout.checkpoint(operator)
    begun, done = _last(checkpoint / "offsets"), _last(checkpoint / "commits")
    if begun is None or begun == done:
        return {"again": 0, "recorded": 0}
    record = BatchLog(layout.batches(operator)).get(begun)
    return {"again": 1, "recorded": int(record is not None)}


def broken_rules(layout: RunLayout, pipeline: Pipeline) -> list[str]:
    """Find readers that are ahead of what Spark has committed.

    Retention would take rows away that a batch that is run again needs.
    """
    broken = []
    for name, operator in pipeline.operators.items():
        if not operator.reads:  # the offsets of an ingest are those of a source that is not ours
            continue
        checkpoint = layout.checkpoint(name)
        done = _last(checkpoint / "commits")
        committed = _ends(checkpoint / "offsets" / str(done)) if done is not None else {}
        for topic in operator.reads:
            read = positions(layout.topic(topic)).get(name, 0)
            if read > committed.get(topic, 0):
                broken.append(f"{name} gave up {topic} before {read}, committed: {committed}")
    return broken


def _last(log: Path) -> int | None:
    """The newest batch of one of Spark's logs."""
    numbers = (int(path.name) for path in log.glob("[0-9]*") if path.name.isdecimal())
    return max(numbers, default=None)


def _ends(offsets: Path) -> dict[str, int]:
    """Where a batch ended in each topic: version, metadata, then one line a source."""
    ends: dict[str, int] = json.loads(offsets.read_text().splitlines()[2])["at"]
    return ends
