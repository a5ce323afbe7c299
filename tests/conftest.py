"""Settings shared by all tests."""

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# many short JVMs: compiling thoroughly costs them more than it brings
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# a shell starts background jobs with interrupts switched off; processes of tests shall hear them
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# the same examples on every machine, and none kept on disk
settings.register_profile(
    "penstock",
    database=None,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("penstock")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """One Spark session for all tests that need one."""
    # loaded where it is needed: other tests shall not wait for Spark
    from penstock.engines.spark.cluster.session import end_session, start_session  # noqa: PLC0415
    from penstock.engines.spark.cluster.worker_pool import start_workers  # noqa: PLC0415

    home = tmp_path_factory.mktemp("spark")
    session = start_session("tests", 24, home / "spark.log")
    start_workers(session, 12, home / "warming")
    yield session
    end_session(session)
