"""What a pipeline says about its topics: their rows, how long they stay, and who makes them."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from penstock.topics.partition import Partition
from penstock.topics.schema import parse_schema
from penstock.workloads.pattern import ArrivalName

#: Makes rows of a source: (number of the first record, when each is due) -> table.
MakeRows = Callable[[int, pa.Array], pa.Table]

#: What is known about a record that an operator failed on; the row itself is written as JSON.
ERRORS_SCHEMA = parse_schema("topic string, offset long, error string, row string")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTopic:
    """A topic as it is declared, or as it follows from the operators that fill it."""

    name: str
    #: Without `_event`; None if it shows at the start only, from what a frame operator returns.
    schema: pa.Schema | None
    #: How long records stay: "read", or a time or a size such as "10 minutes" and "2 GB".
    keep: str = "read"
    #: Whether another process fills it.
    external: bool = False
    #: How its rows are ordered for an operator with keyed state that reads them.
    partition: Partition | None = None
    #: The name that it had at an earlier start of a run, if that was another.
    was: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Rows for a topic that no operator fills, made by a function as a workload asks for them."""

    topic: str
    make: MakeRows
    arrivals: ArrivalName
    #: Its part of the workload, if several topics have to be in proportion.
    share: float = 1.0


def errors_topic(operator: str) -> str:
    """Name the topic for what an operator failed on.

    >>> errors_topic("resize")
    'resize-errors'
    """
    return f"{operator}-errors"
