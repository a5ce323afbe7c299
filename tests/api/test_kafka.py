"""What `penstock.kafka` refuses before anything starts."""

import sys
from typing import Any

import pytest
from tests.tools.kafka_mock import mock_kafka

import penstock
from penstock.errors import InputError

ADDRESS = "kafka://127.0.0.1:1/orders"


@pytest.mark.parametrize(
    ("address", "options", "problem"),
    [
        ("orders", {}, "address: must begin with kafka://"),
        (ADDRESS, {}, "schema: is needed for values of the format 'json'"),
        (ADDRESS, {"values": "avro"}, "values: unknown format 'avro'"),
        (ADDRESS, {"schema": "id long", "start": "first"}, "start: unknown: 'first'"),
        (ADDRESS, {"schema": "id long", "on_lost": "skp"}, "on_lost: unknown: 'skp'"),
        (ADDRESS, {"schema": "id long", "isolation": "none"}, "isolation: unknown: 'none'"),
        (ADDRESS, {"schema": "id long", "max_rows": 0}, "max_rows: must be a whole number"),
        (ADDRESS, {"schema": "id long", "tasks": 1.5}, "tasks: must be a whole number"),
        (ADDRESS, {"settings": {"sasl.password": "x"}}, "sasl.password: must not stand in code"),
        (ADDRESS, {"properties": "/no/such/file"}, "properties: /no/such/file cannot be read"),
    ],
)
def test_reading(address: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        penstock.kafka.read(None, address, **options)  # type: ignore[arg-type]
    assert problem in str(caught.value)


def test_a_topic_that_is_missing() -> None:
    with mock_kafka() as broker:
        broker.write("orders", 0, [b"{}"])
        with pytest.raises(InputError, match="topic clicks: does not exist"):
            penstock.kafka.read(None, broker.url("clicks"), schema="id long")  # type: ignore[arg-type]


def test_a_prefix_is_a_word() -> None:
    with pytest.raises(InputError, match="id_prefix: must be a word, got 'a b'"):
        penstock.kafka.write(None, ADDRESS, id_prefix="a b")  # type: ignore[arg-type]


def test_the_package_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["confluent_kafka", "confluent_kafka.admin"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"needs confluent-kafka: pip install '.\[kafka\]'"):
        penstock.kafka.read(None, ADDRESS, schema="id long")  # type: ignore[arg-type]
