"""Queries of factories: arguments, and what happens where nothing can be started again."""

from pathlib import Path
from typing import Any

import pytest
from tests.api.test_attachment import RemoteQuery, RemoteSession, wait_for

import penstock
from penstock.errors import InputError


def start(_spark: Any, _k: int) -> Any:
    return RemoteQuery()


def test_a_session_of_spark_connect_starts_it_and_advises(tmp_path: Path):
    session: Any = RemoteSession()
    words = penstock.elastic(start, partitions=(2, 6), initial=3)
    assert words.query is None
    attached = penstock.attach(
        session,
        words,
        freshness="30 s",
        mode="restart",
        policy="ds2",
        interval_s=0.5,
        out=tmp_path / "run",
        quiet=True,
    )
    wait_for(attached, 2)
    tick = attached.journal.ticks[-1]
    assert tick.snapshot is not None
    shown = tick.snapshot.operators["words"]
    assert (shown.parallelism, shown.min_parallelism, shown.max_parallelism) == (3, 2, 6)
    assert (attached.mode, words.partitions, words.is_active) == ("dry-run", 3, True)
    assert "classic session" in attached.note
    assert 'words = "2:6"' in (tmp_path / "run" / "run.toml").read_text()
    words.query.isActive = False  # type: ignore[union-attr, misc]
    assert attached.wait(10.0)
    with pytest.raises(InputError) as error:
        penstock.attach(session, words, freshness="30 s", mode="restart")
    assert error.value.field == "queries"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        pytest.param({"factory": "words"}, "factory", id="no function"),
        pytest.param({"factory": lambda _spark: None}, "factory", id="no number"),
        pytest.param({"partitions": 4}, "partitions", id="no bounds"),
        pytest.param({"partitions": (2, 1)}, "partitions", id="fewest above most"),
        pytest.param({"initial": 9}, "initial", id="above the most"),
        pytest.param({"initial": True}, "initial", id="not a number"),
        pytest.param({"deadline": "soon"}, "deadline", id="no time"),
    ],
)
def test_a_wrong_argument_of_a_factory_is_named(options, field):
    with pytest.raises(InputError) as error:
        penstock.elastic(**{"factory": start, **options})
    assert error.value.field == field


@pytest.mark.parametrize(
    ("queries", "options", "field"),
    [
        pytest.param([start], {"mode": "executors"}, "mode", id="another mode"),
        pytest.param([start], {"policy": "ds3"}, "policy", id="unknown policy"),
        pytest.param([start, None], {}, "queries", id="a query among them"),
        pytest.param([lambda _s, _k: 3], {}, "factory", id="no query returned"),
        pytest.param([start], {"spark": object()}, "spark", id="no session"),
    ],
)
def test_a_wrong_argument_of_attach_starts_nothing(queries, options, field, tmp_path):
    started: list[RemoteQuery] = []

    def watch(factory: Any) -> Any:
        def call(spark: Any, k: int) -> Any:
            started.append(factory(spark, k))
            return started[-1]

        return call

    given = [RemoteQuery() if f is None else penstock.elastic(watch(f)) for f in queries]
    arguments: dict[str, Any] = {"spark": RemoteSession(), "mode": "restart", **options}
    with pytest.raises(InputError) as error:
        penstock.attach(
            queries=given, freshness="30 s", out=tmp_path / "run", quiet=True, **arguments
        )
    assert error.value.field == field
    assert not any(isinstance(query, RemoteQuery) for query in started)


def test_a_query_is_stopped_again_if_the_directory_is_not_empty(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "journal.jsonl").touch()
    words = penstock.elastic(start)
    session: Any = RemoteSession()
    with pytest.raises(InputError) as error:
        penstock.attach(session, words, freshness="30 s", mode="restart", out=tmp_path)
    assert error.value.field == "out"
    assert not words.is_active
