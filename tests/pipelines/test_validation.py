"""What is wrong with the graph of a pipeline is found before anything starts."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.pipelines.factories import COLUMNS, orders, same, shop, source

from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline


def other(batch: Any) -> Any:
    return batch


def yields(first_id: int, due: Any) -> Any:
    yield first_id


def out(pipeline: Pipeline, **options: Any) -> Pipeline:
    """The pipeline with an operator from orders to out."""
    if "out" not in pipeline.declared:
        pipeline.topic("out", COLUMNS)
    pipeline.batches(**({"reads": "orders", "writes": "out"} | options))(same)
    return pipeline


def unknown_topic() -> Pipeline:
    return out(source(), reads="order")


def unfilled_topic() -> Pipeline:
    pipeline = out(source())
    pipeline.topic("prices", "id long")
    return pipeline


def misspelt_topic() -> Pipeline:
    pipeline = source()
    pipeline.topic("large", COLUMNS)
    pipeline.operator(reads="orders", writes="larg")(same)
    return pipeline


def two_writers() -> Pipeline:
    pipeline = out(source())
    pipeline.batches(reads="orders", writes="out")(other)
    return pipeline


def written_and_produced() -> Pipeline:
    pipeline = out(source())
    pipeline.produces("out")(orders)
    return pipeline


def written_and_external() -> Pipeline:
    pipeline = source()
    pipeline.topic("out", COLUMNS, external=True)
    return out(pipeline)


def dropped_into_the_output() -> Pipeline:
    return out(source(), queue_size=5, dropped_to="out")


def cycle() -> Pipeline:
    pipeline = source()
    pipeline.topic("back", COLUMNS)
    pipeline.batches(reads="out", writes="back")(other)
    return out(pipeline, reads=["orders", "back"])


def its_own_input() -> Pipeline:
    return out(source(), reads=["orders", "out"])


def no_operators() -> Pipeline:
    return source()


def bad_objective() -> Pipeline:
    pipeline = shop()
    pipeline.objective_s = -1.0
    return pipeline


def undeclared_source() -> Pipeline:
    pipeline = out(source())
    pipeline.produces("prices")(orders)
    return pipeline


def source_that_yields() -> Pipeline:
    pipeline = out(source())
    pipeline.topic("prices", "id long")
    pipeline.produces("prices")(yields)
    return pipeline


def unknown_arrivals() -> Pipeline:
    pipeline = out(source())
    pipeline.topic("prices", "id long")
    pipeline.produces("prices", arrivals="poison")(orders)  # type: ignore[arg-type]
    return pipeline


def too_large_a_share() -> Pipeline:
    pipeline = out(source())
    pipeline.topic("prices", "id long")
    pipeline.produces("prices", share=3)(orders)
    return pipeline


@pytest.mark.parametrize(
    ("make", "field", "problem", "hint"),
    [
        (unknown_topic, "same.reads", "there is no topic 'order'", "did you mean 'orders'?"),
        (unfilled_topic, "topics.prices", "nothing fills", "external=True"),
        (misspelt_topic, "topics.large", "'larg' is filled by operator 'same'", "the same?"),
        (two_writers, "topics.out", "by operator 'same' and by operator 'other'", 'reads=["a"'),
        (written_and_produced, "topics.out", "'orders', which produces it", "two topics"),
        (written_and_external, "topics.out", "another process (external=True)", "two topics"),
        (dropped_into_the_output, "topics.out", "operator 'same'", "two topics"),
        (cycle, "other.reads", "other -> same -> other", "acyclic"),
        (its_own_input, "same.reads", "same -> same", "acyclic"),
        (no_operators, "orders", "has no operators", "@pipeline.batches"),
        (bad_objective, "objective_s", "must be above 0, got -1.0", ""),
        (undeclared_source, "topics.prices", "not declared", 'pipeline.topic("prices"'),
        (source_that_yields, "topics.prices", "yields", "return"),
        (unknown_arrivals, "topics.prices.arrivals", "'poison'", "'poisson'"),
        (too_large_a_share, "topics.prices.share", "at most 1, got 3", "add up to 1"),
    ],
)
def test_mistakes_are_named(
    make: Callable[[], Pipeline], field: str, problem: str, hint: str
) -> None:
    with pytest.raises(InputError) as wrong:
        make().check()
    assert wrong.value.field == field
    assert problem in wrong.value.problem
    assert hint in wrong.value.hint


def test_operators_are_found_by_file_and_line() -> None:
    with pytest.raises(InputError) as wrong:
        unknown_topic().check()
    file, _, line = wrong.value.where.rpartition(":")
    assert file.endswith("factories.py")
    assert line == str(same.__code__.co_firstlineno)


def test_a_topic_that_another_process_fills_needs_nobody_here() -> None:
    pipeline = Pipeline("fed")
    pipeline.topic("orders", COLUMNS, external=True)
    assert out(pipeline).check().sources == ("same",)
