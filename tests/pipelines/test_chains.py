"""Which neighbouring operators form a chain, and what a chain looks like as one operator."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from tests.pipelines.factories import COLUMNS, same, shop, source
from tests.pipelines.random_graphs import pipelines

from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.chains import OperatorChain, find_chains
from penstock.pipelines.description import describe
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.pipeline import Pipeline


def two(first: dict[str, Any] | None = None, **second: Any) -> Pipeline:
    """Two operators behind each other, with options."""
    pipeline = source()
    pipeline.topic("middle", COLUMNS)
    pipeline.topic("out", COLUMNS)
    pipeline.batches("orders", "middle", **(first or {}))(named("first"))
    pipeline.batches("middle", "out", **second)(named("second"))
    return pipeline


def named(name: str) -> Any:
    def function(batch: Any) -> Any:
        return same(batch)

    function.__name__ = name
    return function


def test_two_plain_neighbours_are_a_chain() -> None:
    assert find_chains(shop()) == (
        OperatorChain(members=("large", "ids"), end="no operator reads ids"),
    )


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"grouping": "key:id"}, "second has grouping"),
        ({"timeout_s": 2.0}, "second has timeout_s"),
        ({"queue_size": 10}, "second has queue_size"),
        ({"queue_limit": 10}, "second has queue_limit"),
        ({"call_timeout_s": 10}, "second has call_timeout_s"),
        ({"whole_commits": True}, "second has whole_commits"),
        ({"max_replicas": 2}, "second has bounds of its replicas: 1 to 2"),
        ({"on_error": "dead-letter"}, "first and second differ in on_error"),
        ({"chain": False}, "second forbids chains"),
    ],
)
def test_an_operator_with_rules_for_its_queue_runs_alone(options: dict[str, Any], end: str) -> None:
    pipeline = two(**options)
    pipeline.check()
    assert [(c.members, c.end) for c in find_chains(pipeline)] == [
        (("first",), end),
        (("second",), "no operator reads out"),
    ]
    assert join_chains(pipeline) is pipeline


def test_options_that_a_chain_can_keep() -> None:
    first = {"max_replicas": 2, "grouping": "key:id", "queue_limit": 9, "call_timeout_s": 9}
    pipeline = two(first, max_replicas=2, resource=dict, chunk_rows=5)
    assert [chain.members for chain in find_chains(pipeline)] == [("first", "second")]
    letters = {"on_error": "dead-letter"}
    joined = join_chains(two(letters, **letters))
    assert joined.operators["first"].error_topics == ("first-errors", "second-errors")
    assert {"first-errors", "second-errors", "out"} <= joined.topics.keys()


def test_where_a_chain_ends() -> None:
    pipeline = two()
    pipeline.topic("more", COLUMNS)
    pipeline.batches("middle", "more")(named("other"))
    assert find_chains(pipeline)[0].end == "middle has several readers: second, other"
    pipeline = source()
    pipeline.topic("middle", COLUMNS, keep="1 hour")
    pipeline.topic("out", COLUMNS)
    pipeline.batches("orders", "middle")(named("first"))
    pipeline.batches("middle", "out")(named("second"))
    assert find_chains(pipeline)[0].end == "rows of middle are kept: 1 hour"
    pipeline = source()
    pipeline.topic("middle", COLUMNS)
    pipeline.batches("orders", "middle")(named("first"))
    pipeline.operator("middle", "out")(named("frame"))
    assert [c.end for c in find_chains(pipeline)] == [
        "frame is of kind frame",
        "no operator reads out",
    ]


def test_the_pipeline_decides_first() -> None:
    pipeline = two()
    pipeline.chain = False
    assert find_chains(pipeline)[0].end == "the pipeline forbids chains"
    pipeline = two()
    pipeline.hosts = Hosts()
    assert find_chains(pipeline)[0].end == "hosts carry the slices of this pipeline"


def test_rows_are_dealt_anew_in_front_of_a_sliced_operator_and_not_behind_it() -> None:
    pipeline = source()
    for topic in ("middle", "counted", "out"):
        pipeline.topic(topic, COLUMNS)
    pipeline.batches("orders", "middle")(named("first"))

    @pipeline.sliced("middle", "counted", key="id", state="n long")
    def count(batch: Any, state: Any) -> Any:
        return batch

    pipeline.batches("counted", "out")(named("last"))
    assert find_chains(pipeline) == (
        OperatorChain(members=("first",), end="rows are dealt anew for count, by key"),
        OperatorChain(members=("count", "last"), end="no operator reads out"),
    )
    joined = join_chains(pipeline)
    assert joined.check().upstream == {"first": (), "count": ("first",)}
    chain = joined.operators["count"]
    assert (chain.kind, chain.reads, chain.outputs) == ("sliced", ("middle",), ("out",))
    assert chain.head.outputs == ("counted",) and "counted" not in joined.topics


def test_descriptions_do_not_mention_chains_unless_they_are_forbidden() -> None:
    assert "chain" not in str(describe(two()))
    about = describe(two(chain=False))["operators"]
    assert about["second"]["options"]["chain"] is False and "chain" not in about["first"]["options"]


@given(pipelines())
def test_every_operator_is_in_one_chain_and_neighbours_fit(pipeline: Pipeline) -> None:
    chains, operators = find_chains(pipeline), pipeline.operators
    members = [name for chain in chains for name in chain.members]
    assert sorted(members) == sorted(operators)
    for chain in chains:
        assert chain.end
        for before, name in pairwise(chain.members):
            first, second = operators[before], operators[name]
            topic = first.outputs[0]
            assert first.outputs == second.reads == (topic,)
            assert [op.name for op in operators.values() if topic in op.reads] == [name]
            assert second.kind == "batch" and pipeline.declared[topic].keep == "read"
            assert first.options.chain and second.options.chain and pipeline.chain
            assert first.options.on_error == second.options.on_error
            assert second.options.grouping == "even" and second.options.timeout_s is None


@given(pipelines())
def test_no_chain_could_be_longer(pipeline: Pipeline) -> None:
    """A chain that ends in front of an operator says why, and names what is in the way."""
    chains = find_chains(pipeline)
    names = {*pipeline.operators, *pipeline.topics, "pipeline"}
    for chain in chains:
        assert any(name in chain.end for name in names)
        last = pipeline.operators[chain.members[-1]]
        plain = not last.extra_outputs and last.options.chain and pipeline.chain
        readers = [op for op in pipeline.operators.values() if last.writes in op.reads]
        if plain and len(readers) == 1:
            (reader,) = readers
            is_kept = pipeline.declared[str(last.writes)].keep != "read"
            is_own = reader.options != type(reader.options)(
                max_replicas=last.options.max_replicas,
                chunk_rows=reader.options.chunk_rows,
                on_error=last.options.on_error,
            )
            assert is_kept or is_own or reader.kind == "sliced" or len(reader.reads) > 1


@given(pipelines())
def test_a_joined_pipeline_has_the_same_ends(pipeline: Pipeline) -> None:
    before = pipeline.check()
    joined = join_chains(pipeline)
    after = joined.check()
    assert joined.origin is pipeline
    inner = pipeline.topics.keys() - joined.topics.keys()
    fills = {topic for op in pipeline.operators.values() for topic in op.fills}
    assert {topic for op in joined.operators.values() for topic in op.fills} == fills - inner
    assert not any(topic in op.reads for op in joined.operators.values() for topic in inner)
    heads = {name: chain.members[0] for chain in find_chains(pipeline) for name in chain.members}
    edges = {(heads[a], heads[b]) for a, b in before.edges}
    assert {*after.edges} == {(a, b) for a, b in edges if a != b}
    for name, operator in joined.operators.items():
        assert operator.reads == pipeline.operators[name].reads
        assert operator.kind == pipeline.operators[name].kind
