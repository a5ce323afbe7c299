"""Topics in a directory keep the contract; those in Kafka do so in `make test-kafka`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contracts.topic_checks import CHECKS, MakeTopic

from penstock.topics.embedded.topic import Topic


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_topic_in_a_directory(check: Callable[[MakeTopic, Path], None], tmp_path: Path) -> None:
    check(Topic.create, tmp_path / "images")
