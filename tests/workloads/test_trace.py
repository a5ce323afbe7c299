"""Recorded load: reading CSV, and playing it."""

from importlib.resources import files
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.workloads.bursty import bursty_csv, bursty_rates
from penstock.workloads.registry import make_workload
from penstock.workloads.trace_csv import Columns, read_table
from penstock.workloads.workload import Workload

TWEETS = """\
timestamp,value
2015-02-26 21:42:53,600
2015-02-26 21:47:53,300

2015-02-26 21:52:53,1200
"""


@pytest.fixture
def tweets(tmp_path: Path) -> str:
    file = tmp_path / "tweets.csv"
    file.write_text(TWEETS)
    return str(file)


def play(file: str, minutes: int = 15, **given: object) -> Workload:
    return make_workload("trace", minutes, given={"file": file, "count": "value"} | given)


def test_counts_become_rates_that_hold_until_the_next_row(tweets: str) -> None:
    load = play(tweets)
    assert load.mean_rates(300).tolist() == [2, 1, 4]
    assert load.total_records == 2100


def test_rates_are_taken_as_they_are(tweets: str) -> None:
    load = make_workload("trace", 15, given={"file": tweets, "rate": "value"})
    assert load.mean_rates(300).tolist() == [600, 300, 1200]


def test_seconds_may_begin_anywhere_and_need_not_be_even() -> None:
    load = read_table(["t,rate", "100,1", "110,2", "115.5,3"], Columns())
    assert load.edges_s == (0, 10, 15.5, 21)
    assert load.starts == (1, 2, 3)


def test_times_with_zones_are_compared_as_instants() -> None:
    lines = ["time,count", "2024-01-01T00:00:00Z,60", "2024-01-01T01:01:00+01:00,120"]
    assert read_table(lines, Columns()).starts == (1, 2)


def test_a_recording_is_sped_up_at_the_same_rates(tweets: str) -> None:
    assert play(tweets, 3, speed_up=5).mean_rates().tolist() == [2, 1, 4]


def test_a_recording_is_resampled_without_losing_records(tweets: str) -> None:
    load = play(tweets, 10, resample=400)
    assert load.mean_rates(400).tolist() == pytest.approx([(600 + 100) / 400, 1])
    assert load.total_records == 900


def test_a_recording_is_scaled_by_a_factor_and_to_a_mean(tweets: str) -> None:
    assert play(tweets, scale=10).mean_rates(300).tolist() == [20, 10, 40]
    assert play(tweets, mean=700).mean_rate == pytest.approx(700)


def test_a_recording_can_begin_later_and_again(tweets: str) -> None:
    load = play(tweets, 25, start=10, repeat="yes")
    assert load.mean_rates(300).tolist() == [4, 2, 1, 4, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"minutes": 20}, "trace.minutes: the recording lasts 15 minutes, not 20"),
        ({"start": 15}, "trace.start: must be below the recording's 15 minutes, got 15"),
        ({"count": "valeu"}, "tweets.csv:1: count: there is no column 'valeu'"),
        ({"count": ""}, "tweets.csv:1: rate: there is no column called rate or count"),
        ({"rate": "value"}, "tweets.csv:1: rate: give the column of rates or that of counts"),
        ({"time": "when"}, "tweets.csv:1: time: there is no column 'when'"),
        ({"file": "nowhere.csv"}, "trace.file: there is no file 'nowhere.csv'"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    tweets: str, given: dict[str, object], message: str
) -> None:
    asked = {"file": tweets, "count": "value", "minutes": 15} | given
    minutes = int(str(asked.pop("minutes")))
    with pytest.raises(InputError) as caught:
        make_workload("trace", minutes, given=asked)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["0,1", "60,x"], "load.csv:3: rate: must be a number of at least 0, got 'x'"),
        (["0,1", "60,-1"], "load.csv:3: rate: must be a number of at least 0, got '-1'"),
        (["0,1", "60,nan"], "load.csv:3: rate: must be a number of at least 0, got 'nan'"),
        (["0,1", "60"], "load.csv:3: has 1 cells, the first line has 2"),
        (["0,1", "", "0,1"], "load.csv:4: time: must be later than on line 2, got '0'"),
        (["0,1", "noon,1"], "load.csv:3: time: must be a number of seconds, as in the first row"),
        (["noon,1", "1,1"], "load.csv:2: time: must be seconds or a time such as"),
        (["0,1"], "load.csv: needs at least two rows below its first line, has 1"),
        ([], "load.csv: needs at least two rows below its first line, has 0"),
    ],
)
def test_a_bad_row_is_named_with_its_line(rows: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_table(["time,rate", *rows], Columns(), "load.csv")
    assert str(caught.value).startswith(message)


def test_an_empty_file_has_no_columns() -> None:
    with pytest.raises(InputError, match="the file is empty"):
        read_table([], Columns(), "load.csv")


def test_no_load_cannot_be_scaled_to_a_mean(tmp_path: Path) -> None:
    file = tmp_path / "quiet.csv"
    file.write_text("time,rate\n0,0\n60,0\n")
    with pytest.raises(InputError, match=r"trace\.mean: cannot be reached"):
        make_workload("trace", 2, given={"file": str(file), "mean": 5})


def test_the_recording_that_ships_is_the_one_that_is_made() -> None:
    shipped = make_workload("bursty", 720).mean_rates().tolist()
    assert shipped == bursty_rates()
    file = files("penstock.workloads") / "data" / "bursty.csv"
    assert file.read_text("utf-8") == bursty_csv()


def test_the_recording_that_ships_has_spikes_and_lulls() -> None:
    rates = sorted(bursty_rates())
    median = rates[len(rates) // 2]
    assert rates[-1] > 4 * median
    assert rates[0] < median / 4
    assert sum(rates) / len(rates) == pytest.approx(1000, abs=1)
