"""The functions of the pipeline, against what the lines of text say."""

from collections import Counter

import pytest

from penstock.decentralized.processes.functions import (
    MAX_OPERATORS,
    build_pipeline,
    count_directly,
    write_line,
)

REGIONS = {"Rennes": "west", "Nantes": "west", "Lyon": "east", "Lille": "north", "Nice": "south"}


@pytest.mark.parametrize("operators", range(1, MAX_OPERATORS + 1))
def test_a_pipeline_of_any_length_counts_every_order_once(operators: int) -> None:
    assert len(build_pipeline(operators)) == operators
    counts = count_directly(operators, range(200), seed=3)
    counts.pop("large", 0)
    cities = Counter(write_line(i, 3).split(";")[1] for i in range(200))
    if operators < 3:
        assert counts == cities
    else:
        by_region: Counter[str] = Counter()
        for city, number in cities.items():
            by_region[REGIONS[city]] += number
        assert counts == by_region


def test_large_orders_are_counted_after_conversion() -> None:
    rates = {"EUR": 1.0, "CHF": 1.05, "USD": 0.92}
    lines = [write_line(i, 5).split(";") for i in range(300)]
    euros = [round(float(amount) * rates[currency], 2) for _, _, amount, currency in lines]
    assert count_directly(5, range(300), seed=5)["large"] == sum(e >= 500 for e in euros)
