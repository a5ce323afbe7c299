"""Lookups from log line to document."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.demos import dns
from penstock.demos.texts import lookups

LOOKUPS = 800


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    return run(dns.PIPELINE, LOOKUPS)


def test_every_lookup_is_stored_once_as_it_was_judged(topics: dict[str, pa.Table]) -> None:
    assert column(topics["stored"], "id") == list(range(LOOKUPS))
    documents = [json.loads(document) for document in column(topics["stored"], "document")]
    assert documents == topics["verdicts"].drop_columns("id").to_pylist()


def test_lines_are_taken_apart(topics: dict[str, pa.Table]) -> None:
    parsed = topics["parsed"].to_pylist()
    again = [f"{row['client']} {row['name']} {row['type']}" for row in parsed]
    assert again == column(topics["lookups"], "line")


def test_a_name_is_judged_by_its_own_measures(topics: dict[str, pa.Table]) -> None:
    assert column(topics["measured"], "length") == [
        len(name) for name in column(topics["parsed"], "name")
    ]
    assert column(topics["verdicts"], "name") == column(topics["parsed"], "name")


def test_most_verdicts_are_right(topics: dict[str, pa.Table]) -> None:
    """98 of 100; all tunnels are found, and nothing else is taken for one."""
    kinds = np.array(lookups.KINDS)[lookups.kinds(np.arange(LOOKUPS))]
    verdicts = np.array(column(topics["verdicts"], "verdict"))
    assert (verdicts == kinds).mean() > 0.96
    assert Counter(verdicts)["tunnel"] == Counter(kinds)["tunnel"] > 0
    assert ((verdicts == "tunnel") == (kinds == "tunnel")).all()
    assert all(0.3 < sure <= 1 for sure in column(topics["verdicts"], "sure"))


def test_with_service_times_every_operator_waits() -> None:
    waiting = dns.build(service_s=0.1).operators.values()
    assert {operator.options.chunk_rows for operator in waiting} == {4}
