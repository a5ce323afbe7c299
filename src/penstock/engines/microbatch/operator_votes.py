"""Adds up the votes of an operator's replicas, and hands their memories on to the next batch.

The votes of a batch are in its record, so they survive whatever dies, and the first record of a
batch counts: a batch that runs again after its record was written changes nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from penstock.core.vote_count import VoteCount
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.replica_vote import (
    ReplicaView,
    ReplicaVote,
    VotingRules,
    end_batch,
)


def with_vote(task: TaskRecord, view: ReplicaView, batch: int) -> TaskRecord:
    """Return the record of a task with the vote of its replica at the end of the batch."""
    vote, memory = end_batch(view, batch, task.rows_in, task.busy_s)
    return replace(task, vote=vote, memory=memory)


def read_votes(record: BatchRecord) -> list[ReplicaVote]:
    """Return the votes of the replicas that decided in a batch."""
    return [task.vote for task in record.tasks if task.vote is not None]


def count_replicas(record: BatchRecord, rules: VotingRules) -> int:
    """Return the replicas after a batch: those that ran, plus copies, minus stops, in bounds."""
    if rules.is_fixed:
        return record.replicas
    return rules.within_bounds(record.replicas + sum(vote.change for vote in read_votes(record)))


def count_votes(records: Sequence[BatchRecord], rules: VotingRules, replicas: int) -> VoteCount:
    """Add up the votes in some records; `replicas` is the number now."""
    voted = [record for record in records if read_votes(record)]
    if rules.is_fixed or not voted:
        return VoteCount(before=replicas, after=replicas, is_fixed=rules.is_fixed)
    votes = [vote for record in voted for vote in read_votes(record)]
    return VoteCount(
        before=voted[0].replicas,
        after=count_replicas(voted[-1], rules),
        voters=len(votes),
        copies=sum(max(0, vote.change) for vote in votes),
        stops=sum(max(0, -vote.change) for vote in votes),
        load=fmean(vote.load for vote in votes),
        capacity=fmean(vote.capacity for vote in votes),
        probability=fmean(vote.probability for vote in votes),
    )


class VoteReader:
    """Follows the records of an operator for the planner of its batches.

    Without rules a controller decides, and nothing here changes anything.
    """

    def __init__(self, operator: str, rules: VotingRules | None, *, is_even: bool) -> None:
        """`is_even`: whether all replicas get the same share of the rows."""
        self._operator, self._rules, self._is_even = operator, rules, is_even
        self._last: BatchRecord | None = None

    def add(self, record: BatchRecord) -> None:
        """Read one more record."""
        if record.tasks:
            self._last = record

    def replicas(self, commanded: int) -> int:
        """Return the replicas of the next batch; those commanded if there was no vote."""
        if self._rules is None:
            return commanded
        if self._last is None:
            return self._rules.within_bounds(commanded)
        return count_replicas(self._last, self._rules)

    def is_idle_due(self, replicas: int, idle_s: float) -> bool:
        """Whether replicas without rows for so long shall have a batch in which they may stop."""
        rules = self._rules
        if rules is None or rules.is_fixed or self._last is None:
            return False
        return replicas > rules.within_bounds(1) and idle_s >= rules.interval_s

    def views(
        self, replicas: int, *, planned_at: float, rows: int, dropped: int, waiting: int | None
    ) -> Sequence[ReplicaView | None]:
        """Return what each replica of the next batch sees.

        `rows` are those of the batch, `waiting` all that wait for the operator, if that is known.
        """
        last, rules = self._last, self._rules
        if rules is None:
            return [None] * replicas
        left = max(0, waiting - rows) if waiting is not None else 0
        arrived = rows + dropped
        if waiting is not None and last is not None and last.waiting is not None:
            left_before = last.waiting - count_rows(last)
            arrived = max(0, waiting + dropped - left_before)
        own = dict(enumerate(last.tasks)) if last is not None else {}
        lasted_s = last.committed_at - last.planned_at if last is not None else 0.0
        return [
            ReplicaView(
                rules=rules,
                operator=self._operator,
                index=index,
                siblings=replicas,
                planned_at=planned_at,
                rows=rows,
                arrived=arrived,
                left=left,
                is_even=self._is_even,
                lost_s=lasted_s - own[index].busy_s if index in own else None,
                memory=own[index].memory if index in own else None,
            )
            for index in range(replicas)
        ]


def count_rows(record: BatchRecord) -> int:
    """Return the rows of a batch that were not dropped."""
    taken = sum(end - record.start.get(topic, end) for topic, end in record.end.items())
    return taken - sum(record.dropped.values())
