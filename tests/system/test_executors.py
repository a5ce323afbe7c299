"""The second level: executors that follow the replicas, made up and on a cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.tools.processes import LOOPBACK

from penstock.core.executors import ExecutorRules
from penstock.engines.event_json import event_fields
from penstock.engines.events import kind_of
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.cluster.masters import executor_settings, parse_executors, parse_master
from penstock.errors import InputError

ROOT = Path(__file__).parents[2]
RULES = ExecutorRules(low=1, high=4, cores=1, delay_s=10.0)


class Hotel:
    """Rooms in which executors arrive and leave when the test says so."""

    def __init__(self, executors: int) -> None:
        self.asked = executors
        self.guests = {str(number): True for number in range(executors)}
        self._next = executors
        self.warmed: list[list[int]] = []

    def alive(self) -> dict[str, bool]:
        return dict(self.guests)

    def request_total(self, total: int) -> None:
        self.asked = total

    def warm_up_new(self, new_ids: Iterable[int]) -> None:
        self.warmed.append(list(new_ids))

    def release(self, names: Iterable[str]) -> None:
        self.guests |= dict.fromkeys(names, False)

    def arrive(self) -> None:
        self.guests[str(self._next)] = True
        self._next += 1

    def leave(self, name: str) -> None:
        del self.guests[name]


def begun(executors: int) -> tuple[Hotel, Executors]:
    hotel = Hotel(executors)
    level = Executors(hotel, RULES, executors)
    level.begin(0.0)
    return hotel, level


def told(level: Executors, now: float) -> list[dict[str, object]]:
    return [event_fields(event) for event in level.update(now)]


def test_more_are_asked_for_at_once_and_told_when_they_are_there() -> None:
    hotel, level = begun(1)
    (event,) = level.resize(3, 1.0)
    numbers = {"alive": 1, "asked": 3, "before": 1, "why": "more-replicas"}
    assert (kind_of(event), event_fields(event)) == ("executors", numbers)
    assert hotel.asked == 3
    assert level.resize(3, 1.5) == []
    hotel.arrive()
    assert told(level, 4.0) == []
    hotel.arrive()
    assert told(level, 6.0) == [{"alive": 3, "asked": 3, "after_s": 5.0}]
    assert told(level, 7.0) == []


def test_the_youngest_are_sent_home_and_count_until_they_are_gone() -> None:
    hotel, level = begun(3)
    level.resize(1, 1.0)
    assert level.resize(1, 10.9) == []
    assert event_fields(level.resize(1, 11.0)[0])["why"] == "fewer-for-long"
    assert hotel.asked == 1
    assert hotel.guests == {"0": True, "1": False, "2": False}
    hotel.leave("2")
    assert told(level, 12.0) == []
    assert level.alive == 2
    hotel.leave("1")
    assert told(level, 13.5) == [{"alive": 1, "asked": 1, "after_s": 2.5}]


def test_one_that_was_on_its_way_when_fewer_were_asked_for_goes_home() -> None:
    hotel, level = begun(1)
    level.resize(2, 0.0)
    level.resize(1, 1.0)
    level.resize(1, 11.0)
    assert hotel.asked == 1
    assert hotel.guests == {"0": True}
    hotel.arrive()
    level.update(12.0)
    assert hotel.guests == {"0": True, "1": False}


def test_one_that_leaves_is_not_taken_for_one_that_is_there() -> None:
    hotel, level = begun(2)
    level.resize(1, 0.0)
    level.resize(1, 10.0)
    level.resize(2, 10.5)  # asked for again before it was gone
    assert told(level, 11.0) == []
    hotel.leave("1")
    assert told(level, 12.0) == []
    hotel.arrive()
    assert told(level, 15.5) == [{"alive": 2, "asked": 2, "after_s": 5.0}]


def test_one_that_dies_is_told() -> None:
    hotel, level = begun(2)
    hotel.leave("1")
    assert told(level, 1.0) == [{"alive": 1, "asked": 2, "why": "lost"}]
    hotel.arrive()
    assert told(level, 4.0) == [{"alive": 2, "asked": 2, "after_s": 3.0}]


def test_new_executors_are_warmed_up_by_the_ids_that_they_will_have() -> None:
    hotel, level = begun(1)
    level.resize(2, 0.0)
    level.resize(4, 1.0)  # the second one is on its way
    assert hotel.warmed == [[1], [2, 3]]
    for _ in range(3):
        hotel.arrive()
    level.update(5.0)
    level.resize(1, 6.0)
    level.resize(1, 16.0)
    for name in "321":
        hotel.leave(name)
    level.update(17.0)
    level.resize(2, 18.0)  # numbers are not given twice
    assert hotel.warmed[2:] == [[4]]


def test_starting_executors_are_warmed_up_again_when_one_exits() -> None:
    hotel, level = begun(2)
    level.resize(1, 0.0)
    level.resize(1, 10.0)
    level.resize(2, 10.5)
    hotel.leave("1")
    level.update(11.0)
    assert hotel.warmed == [[2], [2]]


def test_executor_seconds_add_up() -> None:
    hotel, level = begun(1)
    level.update(10.0)
    hotel.arrive()
    level.update(15.0)
    assert level.executor_s == 10.0 + 2 * 5.0


def test_a_plan_may_keep_more_than_replicas_need() -> None:
    hotel, level = begun(1)
    level.keep(3)
    level.resize(1, 0.0)
    assert hotel.asked == level.requested == 3
    with pytest.raises(InputError, match="from 1 to 4, got 5"):
        level.keep(5)


# --- what people write


@pytest.mark.parametrize(
    "text",
    ["mesos://a:1", "local-cluster[4,1]", "local-cluster[4,1,1g]", "local[*]", "local[0]", ""],
)
def test_a_master_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="--master"):
        parse_master(text)


def test_masters_are_what_spark_understands() -> None:
    assert parse_master("local-cluster[4, 2, 1024]").url == "local-cluster[4,2,1024]"
    assert parse_master("local[8]").url == "local[8,3]"


def test_a_cluster_that_exists_takes_settings_of_spark(tmp_path: Path) -> None:
    chosen = {"spark.executor.cores": "2", "spark.executor.memory": "1500m", "spark.ui.port": "1"}
    master = parse_master("spark://one:7077", chosen)
    assert (master.url, master.cores, master.memory_mb) == ("spark://one:7077", 2, 1500)
    assert not master.is_on_this_machine
    assert parse_master("spark://127.0.0.1:7077").is_on_this_machine
    settings = executor_settings(master, 1, tmp_path)
    assert settings["spark.ui.port"] == "1"
    assert settings["spark.authenticate"] == "false"
    assert parse_executors("2:40", master) == (2, 40)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("executor.cores=2", "no setting of Spark"),
        ("spark.dynamicAllocation.enabled=true", "set by Penstock"),
        ("spark.authenticate.secret=word", "stored in the run directory"),
        ("spark.executor.cores=many", "whole number"),
        ("spark.executor.memory=2", "a size such as 2g"),
        ("spark.executor.memory=100m", "too little"),
    ],
)
def test_settings_that_are_refused(setting: str, problem: str) -> None:
    key, _, value = setting.partition("=")
    with pytest.raises(InputError, match=problem):
        parse_master("spark://one:7077", {key: value})


def test_settings_need_a_cluster_that_exists() -> None:
    with pytest.raises(InputError, match="cluster that exists"):
        parse_master("local[4]", {"spark.executor.cores": "2"})
    with pytest.raises(InputError, match="is needed with --master yarn"):
        parse_executors(None, parse_master("yarn"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [("4", "cannot be read"), ("3:2", "LOW <= HIGH"), ("0:2", "1 <= LOW"), ("1:5", "4 workers")],
)
def test_bounds_that_are_none(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_executors(text, parse_master("local-cluster[4,1,1024]"))


@pytest.mark.parametrize("master", [None, "local[8]"])
def test_without_a_cluster_the_level_is_absent(master: str | None) -> None:
    where = parse_master(master) if master else None
    assert parse_executors(None, where) is None
    with pytest.raises(InputError, match="no executors in local mode"):
        parse_executors("1:4", where)


# --- on a cluster


@pytest.mark.spark
@pytest.mark.slow
def test_executors_go_up_and_down_under_load_and_nothing_is_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.executors_child", str(tmp_path / "run")],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    # there, asked for at once, there; returned only after a delay, gone
    assert seen["counts"] == [1, 3, 3, 3, 1]
    assert len(seen["executors"]) == 3, "an executor that was bought has worked"
    assert sorted(seen["ids"]) == list(range(seen["offered"]))
    assert seen["offered"] > 0
    assert seen["failed"] == {}
    assert (seen["failed_tasks"], seen["lost_tasks"]) == (0, False)
    assert seen["at"] < seen["executor_s"] < 3 * seen["at"]
    assert "spark.scratch" not in seen["left"]
    # executors are asked for a secret that nobody else can see, on this machine only
    assert seen["executors_seen"] >= 3
    assert seen["listened"] and set(seen["listened"]) <= LOOPBACK
    assert seen["secret_length"] == 64 and not seen["secret_shown"]
