"""Operators that write several topics: declared, checked, described, tried."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.factories import source

from penstock.errors import InputError
from penstock.pipelines.changes import find_changes
from penstock.pipelines.description import describe
from penstock.pipelines.output_rows import split_outputs
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful import counts, try_batches
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.reports.pipeline_text import graph_text
from penstock.runs.record_counts import last_topics
from penstock.state.handle import State
from penstock.topics.partition import Partition
from penstock.topics.schema import EVENT


def sorted_orders(writes: Any = ("large", "small")) -> Pipeline:
    """Orders by their amount, in two topics; both are read, one by key, the other by all."""
    pipeline = source()
    for topic in ("large", "small", "both"):
        pipeline.topic(topic, "id long, amount double")

    @pipeline.batches(reads="orders", writes=writes)
    def sort(batch: pa.RecordBatch) -> dict[str, Any]:
        large = pc.greater(batch["amount"], 100)
        return {"large": batch.filter(large), "small": batch.filter(pc.invert(large))}

    @pipeline.sliced(
        reads=("large", "small"),
        writes="both",
        key={"large": "id"},
        broadcast=("small",),
        state="n long",
    )
    def join(inputs: Any, state: State) -> Any:
        return inputs["large"]

    return pipeline


def test_a_reader_of_any_of_the_topics_has_the_operator_upstream() -> None:
    pipeline = sorted_orders()
    assert pipeline.check().upstream == {"sort": (), "join": ("sort",)}
    assert pipeline.operators["sort"].outputs == ("large", "small")
    assert pipeline.topics["large"].partition == Partition(key=("id",), slices=64)
    assert pipeline.topics["small"].partition is None
    assert last_topics(pipeline) == ("both",)


def test_a_topic_that_nobody_reads_is_an_output_of_the_pipeline() -> None:
    pipeline = sorted_orders()
    del pipeline.operators["join"], pipeline.declared["both"]
    assert last_topics(pipeline) == ("large", "small")


def test_the_graph_shows_all_topics() -> None:
    text = list(graph_text(sorted_orders()))
    assert "  sort: batch, orders -> large, small, 1 to 8 replicas" in text
    assert "  small: id long, amount double; from sort" in text


def test_rows_are_tried_by_topic() -> None:
    sort = sorted_orders().operators["sort"]
    rows = [{"id": 1, "amount": 150.0}, {"id": 2, "amount": 9.0}]
    assert sort.try_outputs(rows) == {"large": rows[:1], "small": rows[1:]}
    assert sort.try_rows(rows) == rows[:1]
    assert sort.try_outputs(rows[:1]) == {"large": rows[:1], "small": []}


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"larg": {"id": []}}, "sort.result: 'larg' is no topic that it writes"),
        ({"id": [1], "amount": [1.0]}, "sort.result: 'id' is no topic that it writes"),
        (pa.table({"id": [1]}), "sort.result: must be a dictionary of rows by topic, got Table"),
        ({"small": {"id": [1]}}, "sort.rows: column 'amount' (double) is missing"),
        ({"small": 7}, "sort.result: must be rows, got int"),
    ],
)
def test_a_wrong_result_names_the_problem(result: Any, problem: str) -> None:
    pipeline = source()
    pipeline.topic("large", "id long, amount double")
    pipeline.topic("small", "id long, amount double")

    @pipeline.batches(reads="orders", writes=["large", "small"])
    def sort(batch: pa.RecordBatch) -> Any:
        return result

    with pytest.raises(InputError) as wrong:
        sort.try_rows([{"id": 1, "amount": 1.0}])
    assert problem in str(wrong.value)


def test_columns_in_place_of_topics_are_answered_with_the_form() -> None:
    with pytest.raises(InputError) as wrong:
        split_outputs({"larg": {}}, ("large", "small"))
    assert "{'large': rows, 'small': rows}" in wrong.value.hint


@pytest.mark.parametrize(
    ("writes", "problem"),
    [
        (("large", "large"), "sort.writes: names a topic twice: large, large"),
        (("large", "smal"), "sort.writes: topic 'smal' is not declared"),
        ((), "sort.writes: must name a topic"),
    ],
)
def test_wrong_topics_are_refused(writes: Any, problem: str) -> None:
    pipeline = sorted_orders(writes)
    del pipeline.operators["join"], pipeline.declared["both"]
    if "small" not in writes:
        del pipeline.declared["small"]
    with pytest.raises(InputError) as wrong:
        pipeline.check()
    assert problem in str(wrong.value)


def test_other_kinds_write_one_topic() -> None:
    pipeline = source()
    pipeline.of_kind("frame", "orders", ("large", "small"))(sorted_orders)
    with pytest.raises(InputError, match="an operator of kind 'frame' writes one topic, got 2"):
        pipeline.check()
    with pytest.raises(InputError, match="a ready-made function writes one topic"):
        pipeline.sliced("orders", ("a", "b"), name="count")(counts(by="id"))


def test_the_description_is_that_of_before_with_a_single_topic() -> None:
    one, two = (describe(sorted_orders(topics)) for topics in ("large", ("large", "small")))
    assert "outputs" not in one["operators"]["sort"]
    assert two["operators"]["sort"]["writes"] == "large"
    assert two["operators"]["sort"]["outputs"] == ["large", "small"]
    whats = [change.what for change in find_changes(one, two)]
    assert whats == ["operator 'sort': also writes 'small'"]
    (back,) = find_changes(two, one)
    assert (back.what, back.is_compatible) == ("operator 'sort': no longer writes 'small'", True)


def test_slices_are_tried_by_topic() -> None:
    def parity(batch: pa.RecordBatch, state: State) -> dict[str, Any]:
        odd = pc.equal(pc.bit_wise_and(batch["id"], 1), 1)
        state.put({"id": batch["id"], "n": batch["id"]})
        return {"odd": batch.filter(odd), "even": batch.filter(pc.invert(odd))}

    slicing = Slicing(keys={"rows": ("id",)}, state="n long", slices=4)
    columns = {"odd": "id long", "even": "id long"}
    batches = [[{"id": number} for number in range(5)], [{"id": 6}]]
    tried = try_batches(parity, batches, "id long", columns, slicing)
    assert sorted(row["id"] for row in tried.rows_of("odd")) == [1, 3]
    assert sorted(row["id"] for row in tried.rows_of("even")) == [0, 2, 4, 6]
    assert tried.rows == tried.rows_of("odd")
    assert [table.num_rows for table in tried.topics["even"]] == [3, 1]
    assert EVENT in tried.topics["odd"][0].schema.names
    with pytest.raises(InputError, match="'eve' is not written"):
        tried.rows_of("eve")
