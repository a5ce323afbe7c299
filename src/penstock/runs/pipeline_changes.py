"""The pipeline of a run that is started again: what changed, what it means, what is carried out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.core.numbers import pretty
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.recovery.migration import (
    INTENT,
    Migration,
    finish_migration,
    migrate,
    removal_folder,
)
from penstock.engines.spark.run_layout import RunLayout, read_json, write_json
from penstock.errors import InputError, nearest
from penstock.pipelines.chains import CHAINS, describe_chains
from penstock.pipelines.changes import PipelineChange, find_changes
from penstock.pipelines.description import describe
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.renames import find_renames
from penstock.topics.embedded.description import check_topic
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.topic import Topic

DESCRIPTION = "pipeline.json"
#: In the description of a run: earlier names of its operators, by present name.
EARLIER = "earlier_names"
_DAMAGED = "remove it to resume without comparing the pipeline with the earlier one"


def check_description(
    pipeline: Pipeline, directory: Path, allow_removal: Collection[str] = ()
) -> list[str]:
    """Keep what the pipeline looks like, or carry out what changed since the last start.

    Returns what changed; `InputError` lists what does not fit the run. The caller
    holds the lock of the run.
    """
    path, new = directory / DESCRIPTION, describe(pipeline.origin)
    if chains := describe_chains(pipeline):
        new[CHAINS] = chains
    layout = RunLayout(directory.resolve())
    finish_migration(layout, path)
    old = read_json(path, _DAMAGED)
    if old is None:
        write_json(path, new)
        return []
    changes = compare_with_run(pipeline.origin, directory)
    _refuse(changes, directory, allow_removal)
    removed = [change.removed for change in changes if change.removed]
    renames = find_renames(old, new)
    after = {**new, EARLIER: _earlier_names(old, renames.operators, new)}
    if renames or removed:
        folders = {name: removal_folder(directory, name) for name in removed}
        migration = Migration(renames=renames, removed=folders, description=after)
        migrate(layout, migration, path)
    else:
        write_json(path, after if after[EARLIER] else new)
    notes = [change.what for change in changes] + [*_compare_chains(old, new)]
    return [f"changed since the run began: {note}" for note in notes]


def _compare_chains(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = ([chain["members"] for chain in about.get(CHAINS, [])] for about in (old, new))
    yield from (f"no chain {' > '.join(names)}" for names in before if names not in after)
    yield from (f"chain {' > '.join(names)}" for names in after if names not in before)


def compare_with_run(pipeline: Pipeline, directory: Path) -> list[PipelineChange]:
    """List what a start of the pipeline in this run directory would change. Touches nothing."""
    # a migration that was cut short is finished first
    pending = read_json(directory / INTENT)
    old = pending["description"] if pending else read_json(directory / DESCRIPTION, _DAMAGED)
    if old is None:
        return []
    new = describe(pipeline)
    layout = RunLayout(directory.resolve())
    changes = [_with_loss(change, old, layout) for change in find_changes(old, new)]
    renames = find_renames(old, new)
    before = {now: was for was, now in renames.topics.items()}
    if all(change.verdict != "refused" for change in changes):
        changes += _topics_on_disk(pipeline, layout, before)
        changes += _names_on_disk(layout, renames.topics)
    return sorted(changes, key=lambda change: change.is_compatible)


def earlier_names(directory: Path) -> dict[str, str]:
    """Return the present names of a run's operators by their earlier ones."""
    description = read_json(directory / DESCRIPTION, _DAMAGED) or {}
    return {old: name for name, names in description.get(EARLIER, {}).items() for old in names}


def _refuse(
    changes: Sequence[PipelineChange], directory: Path, allow_removal: Collection[str]
) -> None:
    removed = [change.removed for change in changes if change.removed]
    for name in allow_removal:
        if name not in removed:
            problem = f"operator {name!r} was not removed from the pipeline"
            raise InputError("--allow-removal", problem, nearest(name, removed))
    wrong = [
        change
        for change in changes
        if not change.is_compatible and not (change.removed and change.removed in allow_removal)
    ]
    if wrong:
        listed = "\n".join(f"  {change.what}\n    {change.hint}" for change in wrong)
        problem = f"the run in this directory cannot go on with it:\n{listed}"
        hint = "mend that, go on with the pipeline as it was, or begin another run with --out DIR"
        raise InputError("pipeline", problem, hint, str(directory))


def _earlier_names(
    old: Mapping[str, Any], renamed: Mapping[str, str], new: Mapping[str, Any]
) -> dict[str, list[str]]:
    known = {**old.get(EARLIER, {})}
    for before, now in renamed.items():
        known[now] = [before, *known.pop(before, [])]
    return {name: names for name, names in known.items() if name in new["operators"]}


def _with_loss(change: PipelineChange, old: Mapping[str, Any], layout: RunLayout) -> PipelineChange:
    """Say what the removal of an operator would drop."""
    if not change.removed:
        return change
    reads = old["operators"][change.removed]["reads"]
    waiting = sum(_rows_waiting(layout, topic, change.removed) for topic in reads)
    parts = [f"{pretty(waiting)} rows wait for it"] if reads else []
    parts += _state_of(layout, change.removed)
    about = f" ({', '.join(parts)})" if parts else ""
    return replace(change, what=f"{change.what}{about}")


def _rows_waiting(layout: RunLayout, topic: str, reader: str) -> int:
    if not layout.topic(topic).is_dir():
        return 0
    log = Topic.open(layout.topic(topic))
    return log.end - positions(log.directory).get(reader, log.first)


def _state_of(layout: RunLayout, operator: str) -> list[str]:
    if not layout.batches(operator).is_dir():
        return []
    record = BatchLog(layout.batches(operator)).last()
    if record is not None and record.state is not None:
        rows = sum(file.rows for files in record.state.state_files.values() for file in files)
        return [f"it has {pretty(rows)} rows of state"]
    return ["it has state of Spark"] if layout.native(operator).is_file() else []


def _topics_on_disk(
    pipeline: Pipeline, layout: RunLayout, before: Mapping[str, str]
) -> list[PipelineChange]:
    """What the topics themselves say; a description does not know the columns of all of them."""
    changes = []
    for name, topic in pipeline.topics.items():
        directory = layout.topic(before.get(name, name))
        if topic.schema is None or not directory.is_dir():
            continue
        try:
            check_topic(directory, topic.schema, topic.partition)
        except InputError as wrong:
            what = f"topic {name!r}: {wrong.field}: {wrong.problem}"
            changes.append(PipelineChange(what=what, verdict="refused", hint=wrong.hint))
    return changes


def _names_on_disk(layout: RunLayout, topics: Mapping[str, str]) -> list[PipelineChange]:
    return [
        PipelineChange(
            what=f"topic {old!r} cannot become {new!r}: the run has rows of a topic {new!r}",
            verdict="refused",
            hint=f"choose another name, or move {layout.topic(new)} away",
        )
        for old, new in topics.items()
        if layout.topic(new).exists()
    ]
