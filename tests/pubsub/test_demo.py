"""The demo of publish/subscribe: its load, its view, a whole one without Spark."""

import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.pubsub.demo import DemoResult, DemoSample, DemoSpec, SubscriberSample
from penstock.reports.pubsub_demo_view import DemoView, demo_text, plain_line

Capture = pytest.CaptureFixture[str]
ENGINE: dict[str, Any] = {
    "operators": [
        {"name": "match", "replicas": 2, "waiting": 1234, "slices_by_replica": [[0, 1], [2, 3]]}
    ],
    "hosts": [{"name": "host-0", "cpu": 0.52, "slices": {"match": [0, 1], "exit": [0]}}],
}


def sample(engine: dict[str, Any]) -> DemoSample:
    subscriber = SubscriberSample(name="cheap", predicate="price < 9", events=1200, delay_s=0.456)
    quiet = SubscriberSample(name="quiet", predicate="price < 0", events=0, delay_s=None)
    return DemoSample(
        at_s=30.0,
        offered_per_s=200.0,
        published=4321,
        subscribers=(subscriber, quiet),
        engine=engine,
    )


@pytest.mark.slow
def test_a_whole_demo_without_spark_is_right(capsys: Capture) -> None:
    assert main(["pubsub", "demo", "--local", "--seconds", "3", "--peak", "100", "--json"]) == 0
    shown = capsys.readouterr()
    figures = json.loads(shown.out)
    assert figures["published"] > 100 and sum(figures["events"].values()) > 10
    assert set(figures["missing"].values()) == set(figures["extra"].values()) == {0}
    assert "page: http://127.0.0.1:" in shown.err


def test_the_view_shows_load_subscribers_replicas_and_hosts() -> None:
    lines = DemoView(DemoSpec(seconds=60)).lines(sample(ENGINE))
    text = "\n".join(lines)
    assert lines[0].startswith("publish/subscribe  [##########..........] 0:30 of 1:00")
    assert "cheap" in text and "1,200" in text and "0.46 s" in text and "price < 9" in text
    assert "match          1,234        2  0 1 | 2 3" in text
    assert "host-0      [#####.....]  52 % CPU  match 0 1  exit 0" in text


def test_a_log_has_one_line_per_sample() -> None:
    line = plain_line(sample(ENGINE))
    assert "200/s" in line and "cheap 1200" in line and "match 2" in line and "hosts 1" in line
    assert "engine: local" in "\n".join(DemoView(DemoSpec()).lines(sample({"kind": "local"})))


def test_the_result_says_what_is_wrong() -> None:
    right = DemoResult(
        published=9,
        events={"a": 3},
        missing={"a": 0},
        extra={"a": 0},
        delay_p50_s=0.1,
        delay_p95_s=0.2,
    )
    assert right.is_right and "exactly those that match" in demo_text(right)
    assert "hosts" not in demo_text(right)
    hosts = demo_text(replace(right, hosts=(1, 2, 4, 2)))
    assert "hosts: 1 at first, 4 at most, 2 at the end" in hosts
    wrong = DemoResult(
        published=9,
        events={"a": 3},
        missing={"a": 1},
        extra={"a": 2},
        delay_p50_s=0.1,
        delay_p95_s=0.2,
    )
    assert not wrong.is_right and "1 missing, 2 too many" in demo_text(wrong)


def test_wrong_options_are_refused(capsys: Capture) -> None:
    assert main(["pubsub", "demo", "--seconds", "0"]) == 2
    assert "--seconds: must be from 1" in capsys.readouterr().err
