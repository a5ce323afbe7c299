"""Compares Spark's checkpoint with the batch records before a run starts, and repairs it.

Records are on disk when a batch ends; Spark's files may be lost in a power failure. With a
checkpoint behind the records, Spark would plan new batches under numbers that have records, and
rows would be lost. A record has a copy of Spark's offset log, so the log is restored from it, and
Spark continues after the last record. What cannot be proven is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.engines.microbatch.batch_record import BatchRecord, read_source_offsets
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.plans import load_plan
from penstock.engines.spark.kinds.kind import SparkKind, find_spark_kind
from penstock.engines.spark.recovery import checkpoints
from penstock.engines.spark.recovery.checkpoints import COMMITS, METADATA, OFFSETS, STATE
from penstock.engines.spark.run_layout import RunLayout, read_json
from penstock.errors import InputError
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.description import DESCRIPTION
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.topic import Topic


def reconcile(pipeline: Pipeline, layout: RunLayout) -> list[str]:
    """Make the checkpoint of every operator fit its records; return one line per repair.

    `InputError` if an operator's checkpoint and records cannot both be right. Nothing of a run
    may be running.
    """
    operators = pipeline.operators.values()
    repairs = [_Repair(layout, operator) for operator in operators]
    for repair in repairs:  # all checks come before any repair
        repair.check() if repair.kind.has_records else repair.check_without_records()
    return [text for repair in repairs for text in repair.carry_out()]


@dataclass(frozen=True)
class _Repair:
    """Compares and repairs one operator."""

    layout: RunLayout
    operator: Operator

    @cached_property
    def kind(self) -> SparkKind:
        return find_spark_kind(self.operator.kind)

    @cached_property
    def checkpoint(self) -> Path:
        return self.layout.checkpoint(self.operator.name)

    @cached_property
    def records(self) -> BatchLog:
        return BatchLog(self.layout.batches(self.operator.name))

    @cached_property
    def last(self) -> BatchRecord | None:
        return self.records.last() if self.kind.has_records else None

    @property
    def end(self) -> int:
        """The batch after the last record."""
        return self.last.batch + 1 if self.last else 0

    @cached_property
    def planned(self) -> dict[int, str]:
        """Batches of Spark's offset log; the text of a damaged one is empty."""
        numbers = checkpoints.list_batches(self.checkpoint, OFFSETS)
        return {n: checkpoints.read_log(self.checkpoint, OFFSETS, n) for n in numbers}

    @cached_property
    def committed(self) -> set[int]:
        numbers = checkpoints.list_batches(self.checkpoint, COMMITS)
        return {n for n in numbers if checkpoints.read_log(self.checkpoint, COMMITS, n)}

    @property
    def has_spark_state(self) -> bool:
        return self.kind.has_spark_state or (self.checkpoint / STATE).is_dir()

    @cached_property
    def is_repartitioned(self) -> bool:
        """Whether a repartition was interrupted, which leaves a batch without a record."""
        data = read_json(self.layout.native(self.operator.name)) or {}
        return data.get("target") is not None

    @cached_property
    def plan_ends(self) -> Mapping[str, int]:
        """The end of the last planned batch, which Spark's log had before."""
        try:
            return dict(load_plan(self.layout.plan(self.operator.name)).end)
        except (FileNotFoundError, InputError):
            return {}

    @cached_property
    def has_metadata(self) -> bool:
        path = self.checkpoint / METADATA
        return path.is_file() and path.stat().st_size > 0

    # --- lost entries

    @property
    def needed(self) -> range:
        """Batches with records that Spark needs: it reads the last two."""
        return range(max(0, self.end - 2), self.end)

    @cached_property
    def lost_offsets(self) -> list[int]:
        return [n for n in self.needed if not self.planned.get(n)]

    @cached_property
    def lost_commits(self) -> list[int]:
        """With Spark's own state the last batch runs again: its watermark is unknown."""
        known = self.end - 1 if self.has_spark_state else self.end
        return [n for n in self.needed if n < known and n not in self.committed]

    # --- checks

    def check(self) -> None:
        """Raise `InputError` if a repair is impossible."""
        self._check_ahead()
        self._check_outputs()
        self._check_offsets()
        if self.lost_offsets:
            self._check_records()
        if self.kind.reads_outside:
            self._check_sources()
        if self.lost_offsets and self.has_spark_state:
            self._check_state()

    def _check_ahead(self) -> None:
        """Check that no batch is committed without a record."""
        newest = max(self.committed, default=-1)
        if newest >= self.end and not self.is_repartitioned:
            problem = f"batch {newest} is committed, but {self._records_text}"
            raise self._refusal(problem, f"restore batches/{self.operator.name} from a backup")

    def _check_outputs(self) -> None:
        for name in self.operator.fills:
            directory = self.layout.topic(name)
            if not (directory / DESCRIPTION).is_file():
                continue
            newest = Topic.open(directory).last_batch(self.operator.name)
            if newest is not None and newest >= self.end:
                problem = f"topic {name} has rows of its batch {newest}, but {self._records_text}"
                raise self._refusal(problem, f"restore batches/{self.operator.name} from a backup")

    def _check_offsets(self) -> None:
        for number, text in self.planned.items():
            record = self.records.get(number) if text else None
            if record is None or not _differ(record, text):
                continue
            problem = f"batch {number} has other offsets in its record than in Spark's checkpoint"
            hint = f"restore checkpoints/{self.operator.name} and batches/{self.operator.name}"
            raise self._refusal(problem, f"{hint} from the same backup")

    def _check_records(self) -> None:
        for number in self.lost_offsets:
            record = self.records.get(number)
            if record is None or not record.offset_log:
                raise self._behind("the record does not say what Spark's log said")

    def _check_sources(self) -> None:
        """Check the entries of an external source, which only the checkpoint has."""
        if self.lost_offsets and not self.has_metadata:
            raise self._behind("what its source had written there is gone, too")
        text = self.last.offset_log if self.last else ""
        if missing := checkpoints.find_missing_sources(self.checkpoint, text):
            problem = f"{', '.join(missing)} is missing: files that were read would be read again"
            hint = f"restore checkpoints/{self.operator.name} from a backup"
            raise self._refusal(problem, hint)

    def _check_state(self) -> None:
        """Check that state and rows of the last batch exist: without its commit it runs again."""
        assert self.last is not None
        is_done = self.last.batch in self.committed
        version = self.last.batch + is_done
        partitions = checkpoints.read_partitions(self.last.offset_log)
        if not checkpoints.has_state_version(self.checkpoint, version, partitions):
            raise self._behind(f"Spark's own state of version {version} is missing")
        for name, start in self.last.start.items() if not is_done else ():
            first = Topic.open(self.layout.topic(name)).first
            if start < min(first, self.last.end[name]):
                raise self._behind(f"rows {start} to {first} of topic {name} are removed")

    def check_without_records(self) -> None:
        """Check an operator without records by the position of its source."""
        newest = max((number for number, text in self.planned.items() if text), default=-1)
        if max(self.committed, default=-1) > newest:
            problem = f"batch {max(self.committed)} is committed, but its offsets are missing"
            raise self._refusal(problem, self._egress_hint)
        ends = checkpoints.read_ends(self.planned[newest]) if newest >= 0 else {}
        for name in self.operator.reads:
            directory = self.layout.topic(name)
            if not (directory / DESCRIPTION).is_file():
                continue
            read = max(positions(directory).get(self.operator.name, 0), self.plan_ends.get(name, 0))
            known = ends.get(name, Topic.open(directory).first)
            if read > known:
                problem = f"Spark knows rows of topic {name} up to {known}, but {read} were written"
                raise self._refusal(problem, self._egress_hint)

    @property
    def _egress_hint(self) -> str:
        name = self.operator.name
        return (
            f"restore checkpoints/{name} from a backup; or, if rows may be written twice, remove"
            f" it and readers/{name}.json of its topic: it begins again with the oldest row there,"
            " and needs a new destination if that is a folder of files"
        )

    @property
    def _records_text(self) -> str:
        return f"the last record is of batch {self.end - 1}" if self.end else "there is no record"

    def _behind(self, problem: str) -> InputError:
        lost = ", ".join(map(str, self.lost_offsets))
        hint = (
            f"restore checkpoints/{self.operator.name} from a backup, or begin another run with"
            " --out DIR; the rows that were committed stay in this directory"
        )
        return self._refusal(f"does not have batch {lost}, which is committed; {problem}", hint)

    def _refusal(self, problem: str, hint: str) -> InputError:
        return InputError(self.operator.name, problem, hint, str(self.checkpoint))

    # --- the repair

    def carry_out(self) -> Iterator[str]:
        """Restore lost entries, remove those of batches that never ran; yield a line per repair."""
        for number in self.lost_offsets:
            checkpoints.write_log(self.checkpoint, OFFSETS, number, self._offset_log(number))
        for number in self.lost_commits:
            following = min(number + 1, self.end - 1)
            text = self.planned.get(following) or self._offset_log(following)
            commit = checkpoints.format_commit(checkpoints.read_watermark_ms(text) if text else 0)
            checkpoints.write_log(self.checkpoint, COMMITS, number, commit)
        if not self.has_metadata and (self.lost_offsets or self.planned):
            checkpoints.write_metadata(self.checkpoint)  # Spark refuses logs without it
        for number, text in self.planned.items():
            if not text and number >= self.end and number == max(self.planned):
                checkpoints.remove_log(self.checkpoint, OFFSETS, number)
        for number in checkpoints.list_batches(self.checkpoint, COMMITS):
            if number not in self.committed and number not in self.lost_commits:
                checkpoints.remove_log(self.checkpoint, COMMITS, number)  # the batch runs again
        if self.has_spark_state and not self.is_repartitioned:
            newest = checkpoints.list_batches(self.checkpoint, OFFSETS)
            checkpoints.remove_state_after(self.checkpoint, newest[-1] + 1 if newest else 0)
        if self.lost_offsets:
            first, last = self.lost_offsets[0], self.lost_offsets[-1]
            which = f"batch {first}" if first == last else f"batches {first} to {last}"
            yield f"{self.operator.name}: Spark's log of {which} was lost; rebuilt from records"

    def _offset_log(self, number: int) -> str:
        record = self.records.get(number)
        return record.offset_log if record else ""


def _differ(record: BatchRecord, offsets: str) -> bool:
    """Whether a record and Spark's log name different rows."""
    if record.offset_log:
        return read_source_offsets(record.offset_log) != read_source_offsets(offsets)
    ends = checkpoints.read_ends(offsets)
    return any(record.end.get(name, end) != end for name, end in ends.items())
