"""The kind *sliced*: a function with keyed state in slices, fn(batch, state) -> batch."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError
from penstock.pipelines.kinds.kind import REPLICA_OPTIONS, OperatorKind, Schemas, Topics
from penstock.pipelines.kinds.schemas import check_output_declared, how_to_declare
from penstock.pipelines.stateful.slice_options import Slicing, state_schemas
from penstock.pipelines.topic_declaration import DeclaredTopic
from penstock.topics.partition import Partition

if TYPE_CHECKING:
    from penstock.pipelines.operator import Operator


def slicing_of(operator: "Operator") -> Slicing:
    """Return the options of a sliced operator; `InputError` for another operator."""
    if operator.slicing is None:
        raise InputError(operator.name, "has no slices", where=operator.where)
    return operator.slicing


class SlicedKind(OperatorKind):
    """Called for one slice at a time, with the rows and the state of that slice."""

    def arguments(self, operator: "Operator") -> tuple[str, ...]:
        """The rows of one input or of several, and the state."""
        return ("batch" if len(operator.reads) == 1 else "inputs", "state")

    def check_schemas(self, operator: "Operator", inputs: Schemas, topics: Topics) -> None:
        """All columns are declared, keys fit together, and no topic is sliced in two ways."""
        check_output_declared(operator)
        for topic in operator.reads:
            if topic not in inputs:
                hint = how_to_declare(topic, operator.topics)
                raise InputError("reads", f"the columns of {topic!r} must be declared", hint)
        slicing = slicing_of(operator)
        state_schemas(slicing, inputs)
        for topic, key in slicing.keys.items():
            _check_partition(topics[topic], Partition(key=key, slices=slicing.slices))

    def late_to(self, operator: "Operator") -> str | None:
        """The topic that was declared for late rows."""
        return slicing_of(operator).late_to

    def add_topics(self, operator: "Operator", topics: dict[str, DeclaredTopic]) -> None:
        """Keyed topics are written in the order of slices; late rows have the input's columns."""
        slicing = slicing_of(operator)
        for topic, key in slicing.keys.items():
            if topic in topics and topics[topic].partition is None:
                partition = Partition(key=key, slices=slicing.slices)
                topics[topic] = replace(topics[topic], partition=partition)
        if slicing.late_to is not None:
            inputs = (topics[topic].schema for topic in slicing.keys if topic in topics)
            declared = DeclaredTopic(name=slicing.late_to, schema=next(inputs, None))
            topics.setdefault(slicing.late_to, declared)

    def describe_state(self, operator: "Operator") -> Mapping[str, Any]:
        """Keys, slices and columns; delays and the topic of late rows may change."""
        slicing = slicing_of(operator)
        keys = {topic: list(columns) for topic, columns in slicing.keys.items()}
        columns = {"state": slicing.state, "state_key": slicing.state_key}
        return {"keys": keys, "slices": slicing.slices, "time": slicing.time, **columns}


def _check_partition(topic: DeclaredTopic, mine: Partition) -> None:
    other = topic.partition
    if other is None or other == mine:
        return
    problem = (
        f"{topic.name!r} is already divided into {other.slices} slices by {', '.join(other.key)}"
        " for another operator, and all sliced readers of a topic need the same key and slices"
    )
    hint = "let an operator write its rows to a second topic, which this one reads"
    raise InputError("key", problem, hint)


KIND = SlicedKind(
    name="sliced",
    options=(*REPLICA_OPTIONS, "queue_limit", "call_timeout_s", "whole_commits", "chain"),
    writes_several=True,
    reduces_rows=True,
    uses_event_time=True,
    leads_chains=True,
    deals_by_key=True,
)
