"""Declaring a pipeline."""

import subprocess
import sys

import pyarrow as pa
import pytest
from tests.pipelines.factories import COLUMNS, orders, same, shop, source

from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.topic_declaration import ERRORS_SCHEMA
from penstock.topics.schema import parse_schema


def test_a_chain() -> None:
    topology = shop().check()
    assert topology.order == ("large", "ids")
    assert topology.upstream["ids"] == ("large",) and topology.sources == ("large",)


def test_a_split_and_a_union() -> None:
    pipeline = source()
    for topic in ("left", "right", "both"):
        pipeline.topic(topic, COLUMNS)

    @pipeline.batches(reads="orders", writes="left")
    def to_left(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads="orders", writes="right")
    def to_right(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads=["left", "right"], writes="both")
    def join(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    topology = pipeline.check()
    assert topology.sources == ("to_left", "to_right")
    assert topology.upstream["join"] == ("to_left", "to_right")


def test_the_order_of_declarations_does_not_matter() -> None:
    pipeline = Pipeline("turned-round")

    @pipeline.batches(reads="a", writes="b")
    def second(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.ingest(writes="a")
    def first(spark: object) -> object:
        return spark

    pipeline.topic("b", COLUMNS)
    pipeline.topic("a", COLUMNS)
    assert pipeline.check().order == ("first", "second")
    assert second.output_schema == second.input_schema == parse_schema(COLUMNS)


def test_from_ingest_to_egress_without_a_schema() -> None:
    pipeline = Pipeline("outside")
    pipeline.ingest(writes="raw")(lambda_named("read"))
    pipeline.operator(reads="raw", writes="clean")(lambda_named("clean"))
    pipeline.egress(reads="clean", max_replicas=3)(lambda_named("store"))
    assert pipeline.check().order == ("read", "clean", "store")
    assert {name: topic.schema for name, topic in pipeline.topics.items()} == {
        "raw": None,
        "clean": None,
    }
    read, store = pipeline.operators["read"], pipeline.operators["store"]
    assert (read.kind, read.reads, read.writes) == ("ingest", (), "raw")
    assert read.options.max_replicas == 1 and store.options.max_replicas == 3
    assert store.writes is None


def lambda_named(name: str) -> object:
    def function(given: object) -> object:
        return given

    function.__name__ = name
    return function


def test_what_is_dropped_and_what_fails_has_topics_of_its_own() -> None:
    pipeline = source()
    pipeline.topic("out", "id long")
    pipeline.batches(
        reads="orders", writes="out", queue_size=10, dropped_to="lost", on_error="dead-letter"
    )(same)
    pipeline.egress(reads=["same-errors"])(lambda_named("alarm"))
    assert pipeline.operators["same"].fills == ("out", "lost", "same-errors")
    assert pipeline.check().upstream["alarm"] == ("same",)
    assert pipeline.topics["lost"].schema == parse_schema(COLUMNS)
    assert pipeline.topics["same-errors"].schema == ERRORS_SCHEMA
    assert set(pipeline.declared) == {"orders", "out"}


def test_an_operator_is_called_like_its_function_and_cannot_be_changed() -> None:
    large = shop().operators["large"]
    assert large(pa.record_batch({"id": [1], "amount": [200.0]})).num_rows == 1
    with pytest.raises(AttributeError):
        large.name = "small"  # type: ignore[misc]


def test_the_function_that_produces_stays_a_function() -> None:
    pipeline = Pipeline("p")
    assert pipeline.produces("orders", arrivals="bursty")(orders) is orders
    assert pipeline.feeds["orders"].make is orders
    assert pipeline.feeds["orders"].arrivals == "bursty"
    assert pipeline.feeds["orders"].share == 1


@pytest.mark.parametrize(
    ("schema", "keep", "field"),
    [
        ("id lung", "read", "topics.t.schema"),
        ("id long, _event timestamp", "read", "topics.t.schema"),
        ("id long", "a while", "topics.t.keep"),
    ],
)
def test_a_topic_that_cannot_be_read_is_refused_at_once(schema: str, keep: str, field: str) -> None:
    with pytest.raises(InputError) as wrong:
        Pipeline("p").topic("t", schema, keep)
    assert wrong.value.field == field and wrong.value.hint


def test_nothing_is_declared_twice() -> None:
    pipeline = shop()
    with pytest.raises(InputError, match=r"topics\.large: is declared twice"):
        pipeline.topic("large", "id long")
    with pytest.raises(InputError, match=r"topics\.orders: has two functions"):
        pipeline.produces("orders")(orders)
    pipeline.batches(reads="orders", writes="x")(same)
    with pytest.raises(InputError) as wrong:
        pipeline.batches(reads="orders", writes="y")(same)
    assert "same: there is an operator of that name already" in str(wrong.value)
    assert "factories.py:" in wrong.value.where and "rename" in wrong.value.hint


@pytest.mark.parametrize("name", ["", "a/b", "../up", "a b", ".hidden", "x" * 101])
def test_names_must_be_fit_for_files(name: str) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        Pipeline(name)
    with pytest.raises(InputError, match="cannot be called"):
        Pipeline("p").topic(name, "id long")


def test_functions_without_a_name_and_operators_are_no_functions() -> None:
    pipeline = shop()
    with pytest.raises(InputError, match="write it with def"):
        pipeline.batches(reads="orders", writes="x")(lambda batch: batch)
    with pytest.raises(InputError, match="is an operator already"):
        pipeline.batches(reads="orders", writes="x")(pipeline.operators["large"])


def test_importing_penstock_is_cheap_and_pipeline_needs_no_spark() -> None:
    code = (
        "import sys, penstock\n"
        "assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "from penstock import Pipeline\n"
        "assert 'pyspark' not in sys.modules and Pipeline('p').name == 'p'\n"
        "assert not hasattr(penstock, 'Pipelines')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
