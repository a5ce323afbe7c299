"""A real broker for the tests of `make test-kafka`; without one they are skipped, with a reason."""

from collections.abc import Iterator

import pytest
from tests.tools.kafka_broker import BrokerMissingError, KafkaBroker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One broker for all tests; a test that kills it starts it again."""
    try:
        broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    except BrokerMissingError as missing:
        pytest.skip(f"no broker of Kafka: {missing}")
    with broker:
        yield broker
