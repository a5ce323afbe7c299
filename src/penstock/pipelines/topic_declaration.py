"""Declarations of topics: their columns, their retention, and the functions that produce rows."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from penstock.topics.partition import Partition
from penstock.topics.schema import parse_schema
from penstock.workloads.pattern import ArrivalName

#: Makes rows of a source: (number of the first record, when each is due) -> table.
MakeRows = Callable[[int, pa.Array], pa.Table]

#: The columns of a record that an operator failed on; the row is written as JSON.
ERRORS_SCHEMA = parse_schema("topic string, offset long, error string, row string")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTopic:
    """A topic as it is declared, or as it follows from the operators that fill it."""

    name: str
    #: Without `_event`; None if only the start shows it, from the result of a frame operator.
    schema: pa.Schema | None
    #: How long records stay: "read", or a time or a size such as "10 minutes" and "2 GB".
    keep: str = "read"
    #: Whether another process fills it.
    external: bool = False
    #: How its rows are ordered for an operator with keyed state that reads them.
    partition: Partition | None = None
    #: Its name at an earlier start of the run, if it was renamed.
    was: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A function that produces the rows of a topic as a workload demands them."""

    topic: str
    make: MakeRows
    arrivals: ArrivalName
    #: Its part of the workload, if several topics are in proportion.
    share: float = 1.0


def errors_topic(operator: str) -> str:
    """Return the name of the topic for rows that an operator failed on.

    >>> errors_topic("resize")
    'resize-errors'
    """
    return f"{operator}-errors"
