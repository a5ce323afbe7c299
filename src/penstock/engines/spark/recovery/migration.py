"""Moves the files of topics and operators that were renamed or removed.

The migration is logged before anything moves, and every step can be repeated: a restart completes
an interrupted migration. Nothing is deleted; the files of a removed operator move to the folder
`removed`. Files also contain names: topics in Spark's offset logs and in batch records, operators
in the newest commit of the topics they write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_totals import WRITTEN
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.recovery.checkpoints import rename_topics_in_log
from penstock.engines.spark.run_layout import RunLayout, read_json, write_json
from penstock.files.atomic import replace as replace_file
from penstock.pipelines.renames import Renames, rename_keys
from penstock.topics.embedded.commit_chain import Chain
from penstock.topics.embedded.description import DESCRIPTION, read_description
from penstock.topics.embedded.readers import READERS, forget

VERSION = 1
INTENT = "migration.json"
REMOVED = "removed"
#: Fields of a batch record that are mappings, but not by topic.
_NOT_BY_TOPIC = ("dropped", "event_times", "state", "totals")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Renames and removals in a run directory."""

    renames: Renames = Renames()
    #: By removed operator: the folder of the run for its files.
    removed: Mapping[str, str] = field(default_factory=dict)
    #: The description of the pipeline afterwards, and the file that holds it.
    description: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return {
            "version": VERSION,
            "topics": dict(self.renames.topics),
            "operators": dict(self.renames.operators),
            "removed": dict(self.removed),
            "description": dict(self.description),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Migration":
        """Read what `to_json` wrote."""
        renames = Renames(topics=data["topics"], operators=data["operators"])
        return cls(renames=renames, removed=data["removed"], description=data["description"])


def removal_folder(run: Path, operator: str) -> str:
    """Return a new folder for the files of a removed operator."""
    number = 1
    while (run / REMOVED / f"{operator}-{number}").exists():
        number += 1
    return f"{REMOVED}/{operator}-{number}"


def migrate(layout: RunLayout, migration: Migration, description: Path) -> None:
    """Log a migration and carry it out; only while nothing runs in the directory."""
    write_json(layout.run / INTENT, migration.to_json())
    finish_migration(layout, description)


def finish_migration(layout: RunLayout, description: Path) -> None:
    """Complete a logged migration; does nothing if there is none."""
    data = read_json(layout.run / INTENT)
    if data is None:
        return
    migration = Migration.from_json(data)
    for operator, folder in migration.removed.items():
        _remove_operator(layout, operator, layout.run / folder)
    _rename_topics(layout, migration.renames.topics)
    for old, new in migration.renames.operators.items():
        _rename_operator(layout, old, new)
    write_json(description, migration.description)
    (layout.run / INTENT).unlink()


def _rename_topics(layout: RunLayout, names: Mapping[str, str]) -> None:
    if not names:
        return
    for old, new in names.items():
        _move(layout.topic(old), layout.topic(new))
        topic = read_description(layout.topic(new))
        replace_file(layout.topic(new) / DESCRIPTION, topic.to_bytes(new))
    for checkpoint in _folders(layout.run / "checkpoints"):
        _rename_in_checkpoint(checkpoint, names)
    for batches in _folders(layout.run / "batches"):
        _rename_in_records(batches, names)
    for plan in (layout.run / "plans").glob("*.pickle"):  # the source rewrites it
        plan.unlink()


def _rename_in_checkpoint(checkpoint: Path, names: Mapping[str, str]) -> None:
    for path in checkpoint.glob("offsets/[0-9]*"):
        before = path.read_text(encoding="utf-8")
        after = rename_topics_in_log(before, names)
        if after != before:
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # of the old content
            replace_file(path, after.encode())


def _rename_in_records(directory: Path, names: Mapping[str, str]) -> None:
    log = BatchLog(directory)
    for number in sorted(int(path.stem) for path in directory.glob("[0-9]*.json")):
        record = log.get(number)
        if record is not None:
            log.rewrite(_with_topics(record, names))


def _with_topics(record: BatchRecord, names: Mapping[str, str]) -> BatchRecord:
    data = record.to_json()
    for key, value in data.items():
        if isinstance(value, Mapping) and key not in _NOT_BY_TOPIC:
            data[key] = rename_keys(value, names)
    written = {f"{WRITTEN}{old}": f"{WRITTEN}{new}" for old, new in names.items()}
    data["totals"] = rename_keys(data.get("totals", {}), written)
    if "open_inputs" in data:
        data["open_inputs"] = [names.get(name, name) for name in data["open_inputs"]]
    if data.get("offset_log"):
        data["offset_log"] = rename_topics_in_log(data["offset_log"], names)
    return BatchRecord.from_json(data)


def _rename_operator(layout: RunLayout, old: str, new: str) -> None:
    for folder in _operator_folders(layout.run):
        for path in _entries_of(folder, old):
            _move(path, folder / f"{new}{path.name.removeprefix(old)}")
    _rename_in_state(layout.checkpoint(old), layout.checkpoint(new))
    for topic in _folders(layout.run / "topics"):
        _move(topic / READERS / f"{old}.json", topic / READERS / f"{new}.json")
        _rename_writer(topic, old, new)


def _rename_in_state(old: Path, new: Path) -> None:
    """Rename full paths in the metadata of state variables (`transformWithState`)."""
    for path in new.glob("state/*/_metadata/v2/[0-9]*"):
        before = path.read_text(encoding="utf-8")
        after = before.replace(f"{old}/", f"{new}/")
        if after != before:
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            replace_file(path, after.encode())


def _rename_writer(topic: Path, old: str, new: str) -> None:
    """Rename the operator in the newest commit, which names the published batches."""
    chain = Chain(topic)
    newest = chain.newest
    if newest is None or old not in newest.batches:
        return
    writer = new if newest.writer == old else newest.writer
    chain.rewrite(replace(newest, writer=writer, batches=rename_keys(newest.batches, {old: new})))


def _remove_operator(layout: RunLayout, operator: str, target: Path) -> None:
    for folder in _operator_folders(layout.run):
        for path in _entries_of(folder, operator):
            _move(path, target / folder.name / path.name)
    for topic in _folders(layout.run / "topics"):
        forget(topic, operator)


def _operator_folders(run: Path) -> Sequence[Path]:
    """Return the folders with an entry for each operator."""
    return [folder for folder in _folders(run) if folder.name not in ("topics", REMOVED)]


def _entries_of(folder: Path, operator: str) -> Iterator[Path]:
    for path in list(folder.iterdir()):
        if operator == (path.name if path.is_dir() else path.stem):
            yield path


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _move(old: Path, new: Path) -> None:
    """Move a file or folder, unless it was moved already."""
    if old.exists():
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
