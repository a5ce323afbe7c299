"""Declares a query that `attach` may start again with another number of partitions."""

import inspect
from typing import TYPE_CHECKING, Any

from penstock.api.attach_arguments import read_bounds, read_duration
from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.engines.attached.restart.elastic_query import QueryFactory


def elastic(
    factory: "QueryFactory",
    *,
    partitions: tuple[int, int] = (1, 8),
    initial: int | None = None,
    deadline: str | float = "2 min",
) -> ElasticQuery:
    """Declare a query that may be started again with another number of partitions.

    `factory` gets the session and a number k, and returns a started query with a checkpoint. While
    it runs, `spark.sql.shuffle.partitions` is k; it may use k for `minPartitions` or
    `repartition`, too. `partitions` are the fewest and the most, `initial` those of the first start
    (by default the fewest). If the query has no committed batch within the `deadline` after a
    change, the previous number is restored. Hand the result to `attach` with `mode="restart"`:

        def start_words(spark, k):
            words = spark.readStream.format("kafka").option("minPartitions", k)
            return words.load().writeStream.option("checkpointLocation", "words").start()

        words = penstock.elastic(start_words, partitions=(2, 16))
        attached = penstock.attach(spark, words, freshness="30 s", mode="restart")
        print(words.query.status, words.partitions)

    State is repartitioned if its store is RocksDB and its checkpoint is on this machine.
    """
    _check_factory(factory)
    bounds = read_bounds(partitions, "partitions")
    first = bounds[0] if initial is None else initial
    if type(first) is not int or not bounds[0] <= first <= bounds[1]:
        raise InputError("initial", f"must be from {bounds[0]} to {bounds[1]}, got {first!r}")
    deadline_s = read_duration(deadline, "deadline")
    return ElasticQuery(factory, bounds=bounds, initial=first, deadline_s=deadline_s)


def _check_factory(factory: Any) -> None:
    try:
        inspect.signature(factory).bind(None, 1)
    except (TypeError, ValueError):
        problem = f"must be a function of a session and a number of partitions, got {factory!r}"
        raise InputError("factory", problem, "penstock.elastic(lambda spark, k: ...)") from None
