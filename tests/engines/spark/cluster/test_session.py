"""The settings with which a session starts. Without a JVM."""

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf

from penstock.engines.spark.cluster import session
from penstock.engines.spark.cluster.jvm import LOOPBACK
from penstock.engines.spark.cluster.masters import Master


class LaunchedError(Exception):
    """As far as this goes without Java."""


class Conf:
    """What was set before the JVM started, and before Spark started in it."""

    command_line: dict[str, str]
    context: dict[str, str]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Conf:
    found = Conf()

    def start_gateway(conf: SparkConf, *_: object) -> None:
        found.command_line = dict(conf.getAll())

    def start_context(conf: SparkConf, gateway: Any) -> None:
        found.context = dict(conf.getAll())
        raise LaunchedError

    monkeypatch.setattr(session, "start_gateway", start_gateway)
    monkeypatch.setattr(session, "SparkContext", start_context)
    monkeypatch.setattr(session, "kill_session", lambda: None)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
    return found


def test_spark_listens_to_this_machine_and_gives_workers_time(seen: Conf, tmp_path: Path) -> None:
    with pytest.raises(LaunchedError):
        session.start_session("test", 2, tmp_path / "spark.log")
    given = seen.command_line
    assert (given["spark.driver.host"], given["spark.driver.bindAddress"]) == (LOOPBACK, LOOPBACK)
    assert given["spark.authenticate"] == "true"
    # Spark's own 15 s are too short on a busy machine
    assert int(given["spark.python.authenticate.socketTimeout"].removesuffix("s")) >= 60


def test_a_cluster_has_a_new_secret_that_no_command_line_shows(seen: Conf, tmp_path: Path) -> None:
    secrets = []
    for number in range(2):
        with pytest.raises(LaunchedError):
            session.start_session(
                "test", 2, tmp_path / f"{number}.log", master=Master(workers=1, cores=1)
            )
        secrets.append(seen.context["spark.authenticate.secret"])
        assert "spark.authenticate.secret" not in seen.command_line
        assert len(secrets[-1]) >= 32
    assert len(set(secrets)) == 2
