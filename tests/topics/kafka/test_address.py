"""Addresses of Kafka topics: what they are made of, and what is refused."""

import pytest

from penstock.errors import InputError
from penstock.topics.kafka.address import KafkaAddress, is_kafka_address, parse_address


@pytest.mark.parametrize(
    ("text", "servers", "topic"),
    [
        ("kafka://localhost:9092/orders", ("localhost:9092",), "orders"),
        ("kafka://a:1,b.example.org:65535/shop.orders-1_x", ("a:1", "b.example.org:65535"), None),
        ("kafka://[::1]:9092/orders", ("[::1]:9092",), "orders"),
    ],
)
def test_an_address_has_brokers_and_a_topic(
    text: str, servers: tuple[str, ...], topic: str | None
) -> None:
    address = parse_address(text)
    assert address == KafkaAddress(servers, topic or "shop.orders-1_x")
    assert str(address) == text
    assert address.bootstrap == ",".join(servers)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http://a:1/t", "must begin with kafka://"),
        ("kafka:a:1/t", "must begin with kafka://"),
        ("kafka:///t", "has no broker"),
        ("kafka://a:1,/t", "has no broker"),
        ("kafka://a/t", "broker 'a' has no port"),
        ("kafka://a:x/t", "broker 'a:x' is not host:port"),
        ("kafka://a:70000/t", "broker 'a:70000' is not host:port"),
        ("kafka://a:1", "has no topic"),
        ("kafka://a:1/", "has no topic"),
        ("kafka://a:1/a/b", "topic 'a/b' is not a name that Kafka allows"),
        ("kafka://a:1/..", "topic '..' is not a name"),
        (f"kafka://a:1/{'t' * 250}", "is not a name"),
    ],
)
def test_a_wrong_address_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_address(text, "--to")
    assert str(caught.value).startswith("--to: ")
    assert problem in str(caught.value)
    assert caught.value.hint


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        parse_address("kafka://me:geheim@a:1/t")
    assert "geheim" not in str(caught.value)


def test_what_is_not_a_text_is_refused() -> None:
    with pytest.raises(InputError, match="must be a text, got int"):
        parse_address(7)  # type: ignore[arg-type]


def test_a_directory_is_not_an_address() -> None:
    assert is_kafka_address("kafka://a:1/t")
    assert is_kafka_address("kafka:/a")
    assert not is_kafka_address("topics/kafka")
