"""One DuckDB for all tests of this folder: opening it takes longer than most questions."""

from collections.abc import Iterator

import duckdb
import pytest
from tests.pipelines.stateful.streams import Sql


@pytest.fixture(scope="session")
def sql() -> Iterator[Sql]:
    """Ask about rows."""
    with duckdb.connect(config={"threads": 1}) as connection:
        yield Sql(connection)
