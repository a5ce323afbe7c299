"""The Nexmark queries that are compared with plain Structured Streaming."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from penstock.nexmark.queries import QUERIES
from penstock.pipelines.pipeline import Pipeline
from sides.event_topics import SETTING
from sides.plain import plain_q1, plain_q2, plain_q3, plain_q5, plain_q8, plain_q11

#: Replicas of an operator: as many as a plain query has tasks.
REPLICAS = 2
AIM, NO_AIM = ">= 0.8", "reported, no aim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One query."""

    query: str
    #: The main operator of the query.
    operator: str
    #: The plain query, given a frame for each topic that the operator reads.
    plain: Callable[..., DataFrame]
    #: Events in the topics, and how often they are published.
    events: int
    again: int = 1
    rounds: int = 3
    aim: str = NO_AIM

    def build(self) -> Pipeline:
        """Return the whole pipeline."""
        return QUERIES[self.query].build("thesis", SETTING)

    def build_alone(self) -> Pipeline:
        """Return a pipeline of the main operator alone, with its topics."""
        whole, alone = self.build(), Pipeline(self.query)
        operator = whole.operators[self.operator]
        for name in (*operator.reads, str(operator.writes)):
            is_read = name in operator.reads
            alone.declared[name] = replace(whole.topics[name], external=is_read, keep="1 day")
        options = replace(operator.options, replicas=REPLICAS)
        alone.operators[self.operator] = replace(operator, options=options, topics=alone.declared)
        return alone


CASES = (
    Case(query="q1", operator="mapper", plain=plain_q1, events=4_000_000, again=20, aim=AIM),
    Case(query="q2", operator="filter", plain=plain_q2, events=4_000_000, again=20, aim=AIM),
    Case(query="q11", operator="window", plain=plain_q11, events=24_000_000, aim=AIM),
    Case(query="q3", operator="join", plain=plain_q3, events=24_000_000, rounds=1),
    Case(query="q5", operator="window", plain=plain_q5, events=12_000_000, rounds=1),
    Case(query="q8", operator="join", plain=plain_q8, events=24_000_000, rounds=1),
)
