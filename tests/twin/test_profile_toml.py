"""Profiles as TOML: the standard library reads back every value, comments tell the intervals."""

import tomllib

from penstock.twin.calibration import Calibration, Estimate
from penstock.twin.least_squares import Fit
from penstock.twin.profile_toml import to_toml

FIT = Fit(value=0.1234567, low=0.1, high=0.15, count=40)
ESTIMATES = (
    Estimate(path=("batches", "fixed_s"), label="", value=FIT.value, fit=FIT, source="40 batches"),
    Estimate(path=("batches", "per_replica_s"), label="", value=0.0, source="as asked"),
    Estimate(path=("pipelines", "q1", "objective_s"), label="", value=5, source="as asked"),
    Estimate(path=("pipelines", "q1", "build_args", "service_s"), label="", value="0.015"),
    Estimate(
        path=("pipelines", "q1", "operators", "a.b c", "upstream"),
        label="",
        value=["source", "other one"],
        source="as declared",
    ),
    Estimate(
        path=("pipelines", "./my.py", "operators", "x", "costs", "row_s"), label="", value=1e-7
    ),
    Estimate(
        path=("pipelines", "./my.py", "operators", "x", "skew"), label="", value={"top 1": 0.5}
    ),
)
CALIBRATION = Calibration(runs=("runs/one", 'a "quoted" run'), estimates=ESTIMATES)


def test_every_value_is_read_back() -> None:
    profile = tomllib.loads(to_toml(CALIBRATION))
    assert profile["runs"] == ["runs/one", 'a "quoted" run']
    assert profile["summary"] == "Spark as measured with q1, ./my.py"
    for estimate in ESTIMATES:
        value = profile
        for name in estimate.path:
            value = value[name]
        assert value == (0.123457 if estimate.fit else estimate.value)
        assert type(value) is type(estimate.value)


def test_comments_with_intervals_stand_in_one_column() -> None:
    lines = to_toml(CALIBRATION).splitlines()
    (fitted,) = [line for line in lines if line.startswith("fixed_s")]
    assert fitted == f"{'fixed_s = 0.123457':<30}# 0.1 to 0.15; 40 batches"
    (given,) = [line for line in lines if line.startswith("per_replica_s")]
    assert given.index("#") == fitted.index("#")


def test_tables_stand_apart_and_empty_ones_have_no_header() -> None:
    lines = to_toml(CALIBRATION).splitlines()
    headers = [i for i, line in enumerate(lines) if line.startswith("[")]
    assert all(lines[i - 1] == "" for i in headers)
    assert "[pipelines.q1]" in lines
    assert "[pipelines]" not in lines
    assert "[pipelines.q1.operators]" not in lines
