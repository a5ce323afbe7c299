"""Calls to Spark that stop, repartition and start one query of a factory."""

import json
import re
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.attached.restart.batch_gate import stop_between_batches
from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.engines.attached.restart.query_restarter import StateFacts
from penstock.engines.attached.spark_application import find_checkpoint
from penstock.engines.spark.native_state.repartition import check_version, repartition, settings
from penstock.engines.spark.native_state.rescaler import count_state_rows
from penstock.engines.spark.queries.causes import find_cause
from penstock.engines.spark.recovery.checkpoints import (
    OFFSETS,
    PARTITIONS,
    STATE,
    PlannedBatch,
    read_last_batch,
    read_log,
    read_planned_batch,
    sync_batch,
)
from penstock.errors import InputError, RescaleError

#: How often a failed repartition is tried.
MAX_TRIES = 3
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_DEFAULT_ROOT = "spark.sql.streaming.checkpointLocation"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Spark's words for a query whose first trigger found nothing to read.
_IDLE = "Waiting for"


class SparkRestartHost:
    """One query of a classic session."""

    def __init__(self, spark: SparkSession, elastic: ElasticQuery) -> None:
        self._spark, self._elastic = spark, elastic
        self._root = ""

    def is_stopped(self) -> bool:
        """Whether the user has stopped the query for good."""
        return self._elastic.is_stopped

    def start(self, partitions: int) -> int:
        """Call the factory with k shuffle partitions; return the number that it leaves."""
        if self._elastic.is_stopped:
            raise RescaleError("the query was stopped")
        with settings(self._spark, {PARTITIONS: str(partitions)}):
            query = call_factory(self._elastic, self._spark, partitions)
            shuffle = int(self._spark.conf.get(PARTITIONS) or partitions)
        self._elastic._note_start(query, partitions)
        self._check_root(query)
        return shuffle

    def _check_root(self, query: StreamingQuery) -> None:
        """Refuse a query that would begin anew with every start."""
        root = str(_execution(query).resolvedCheckpointRoot())
        if not self._root and self._is_new_each_time(root):
            query.stop()
            problem = "the query has no checkpoint of its own, so a restart would lose its place"
            raise InputError("factory", problem, 'set .option("checkpointLocation", ...)')
        if self._root and root != self._root:
            query.stop()
            raise RescaleError(f"the factory has changed the checkpoint: {self._root} to {root}")
        self._root = root

    def _is_new_each_time(self, root: str) -> bool:
        """Whether Spark has chosen a checkpoint at random: the query named none, or has no name."""
        name = root.rpartition("/")[2]
        is_default = self._spark.conf.get(_DEFAULT_ROOT, None) is not None
        return name.startswith("temporary-") or (is_default and bool(_UUID.fullmatch(name)))

    def stop(self) -> None:
        """Stop the query between two batches; in the middle of one that passes the deadline."""
        query = self._elastic.query
        if query is not None and query.isActive:
            stop_between_batches(query, lambda: _has_ended(query), self._elastic.deadline_s)
            query.stop()  # returns when it has ended

    def verify(self) -> None:
        """Wait for a committed batch, or for a query that finds nothing to read."""
        query = self._elastic.query
        assert query is not None
        deadline = time.monotonic() + self._elastic.deadline_s
        while time.monotonic() < deadline:
            if query.lastProgress is not None or _is_idle(query):
                return
            if not query.isActive:
                error = query.exception()
                raise RescaleError(find_cause(str(error)).message if error else "it has stopped")
            time.sleep(0.1)
        raise RescaleError(f"no batch was committed within {self._elastic.deadline_s:g} s")

    # --- state

    def read_state(self) -> StateFacts | None:
        """Return the state by the checkpoint; None without state."""
        checkpoint, last = self._checkpoint(), self._read_last()
        if checkpoint is None or last is None or not has_state(checkpoint):
            return None
        before = read_planned_batch(checkpoint, last.number - 1)
        is_interrupted = (
            not last.is_committed and before is not None and before.partitions != last.partitions
        )
        return StateFacts(last.partitions, last.is_committed, is_interrupted)

    def count_state_rows(self) -> int | None:
        """Return the rows of state after the last batch."""
        query = self._elastic.query
        return count_state_rows(query) if query is not None and self.read_state() else None

    def explain_refusal(self) -> str:
        """Return why the query cannot be started with another number; "" if it can."""
        query, checkpoint = self._elastic.query, self._checkpoint()
        progress = query.lastProgress if query is not None else None
        if checkpoint is None:
            has_rows = progress is not None and bool(progress["stateOperators"])
            return f"its state is in {self._root}, which is not on this machine" if has_rows else ""
        if not has_state(checkpoint) or (last := self._read_last()) is None:
            return ""
        try:
            check_version(self._spark.version)
        except RescaleError as error:
            return str(error)
        provider = _read_provider(read_log(checkpoint, OFFSETS, last.number))
        if "RocksDB" in provider:
            return ""
        name = provider.rpartition(".")[2] or "an unknown store"
        return f"its state is in {name}, and Spark repartitions RocksDB only: set {_PROVIDER}"

    def repartition(self, partitions: int) -> None:
        """Repartition the state of the stopped query, or complete an interrupted repartition."""
        checkpoint = self._checkpoint()
        assert checkpoint is not None
        for tries in range(MAX_TRIES, 0, -1):
            before = self._read_last()
            try:
                repartition(self._spark, checkpoint, partitions)
            except RescaleError:
                if tries == 1 or self._read_last() == before:
                    raise
            last = self._read_last()
            if last is not None and last.partitions == partitions and last.is_committed:
                sync_batch(checkpoint, last.number)
                return

    def _checkpoint(self) -> Path | None:
        return find_checkpoint(_execution(self._elastic.query)) if self._elastic.query else None

    def _read_last(self) -> PlannedBatch | None:
        checkpoint = self._checkpoint()
        return read_last_batch(checkpoint) if checkpoint is not None else None


def call_factory(elastic: ElasticQuery, spark: SparkSession, partitions: int) -> Any:
    """Call a factory; `InputError` if it returns something else than a started query."""
    query = elastic.factory(spark, partitions)
    if hasattr(query, "runId") and hasattr(query, "recentProgress"):
        return query
    problem = f"must return a query, returned {type(query).__name__}"
    raise InputError("factory", problem, "return what writeStream...start() returns")


def has_state(checkpoint: Path) -> bool:
    """Whether a query has written state."""
    return any((checkpoint / STATE).glob("[0-9]*"))


def _execution(query: Any) -> Any:
    return query._jsq.streamingQuery()


def _has_ended(query: Any) -> bool:
    """Whether the last batch that was planned has been committed."""
    execution = _execution(query)
    planned = execution.offsetLog().getLatestBatchId()
    return bool(planned.equals(execution.commitLog().getLatestBatchId()))


def _is_idle(query: StreamingQuery) -> bool:
    status = query.status
    return not status["isDataAvailable"] and str(status["message"]).startswith(_IDLE)


def _read_provider(offsets: str) -> str:
    """Return the class of the state store of a batch.

    >>> _read_provider('v1\\n{"conf": {}}\\n-')
    ''
    """
    lines = offsets.splitlines()
    conf = json.loads(lines[1]).get("conf", {}) if len(lines) > 1 else {}
    return str(conf.get(_PROVIDER, ""))
