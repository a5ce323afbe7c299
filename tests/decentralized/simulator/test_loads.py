"""Loads of the simulator: shapes, seeds and traces."""

from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import stdev

import pytest

from penstock.decentralized.simulator.loads import make_loads, read_trace
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.errors import InputError


def loads(seed: int = 1, **fields: object) -> tuple[tuple[int, ...], ...]:
    return make_loads(DecentralizedSetup(**fields), Random(seed))  # type: ignore[arg-type]


def test_the_first_load_uses_the_first_instances_at_the_share_r() -> None:
    for load in ("brownian", "ramp", "growth", "jump"):
        assert {series[0] for series in loads(load=load)} == {2450}  # 7 x 500 x 0.7


def test_brownian_loads_are_independent_reproducible_and_never_negative() -> None:
    first, again, other = loads(1, steps=500), loads(1, steps=500), loads(2, steps=500)
    assert first == again != other
    assert len(set(first)) == 5
    assert min(min(series) for series in first) >= 0


def test_brownian_steps_have_the_given_deviation() -> None:
    series = loads(3, operators=2, instances=1000, steps=4000, volatility=0.001)[0]
    steps = [b - a for a, b in pairwise(series)]
    assert stdev(steps) == pytest.approx(350, rel=0.05)  # 0.001 x 350,000


def test_growing_loads_end_at_their_multiple() -> None:
    ramp, growth = (loads(load=load, steps=101, growth=4)[0] for load in ("ramp", "growth"))
    assert ramp[50] == 6125 and ramp[-1] == growth[-1] == 9800
    assert growth[50] == 4900  # half of the steps, root of the factor
    jump = loads(load="jump", steps=10, growth=2)[0]
    assert jump == (2450,) * 5 + (4900,) * 5


def test_a_trace_has_one_column_for_all_or_one_for_each_operator(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time,rate\n0,10\n1,20\n2,30\n")
    assert read_trace(path, 2, 3) == ((10, 20, 30), (10, 20, 30))
    path.write_text("time,rate-1,rate-2\n0,10,7\n1,20,8\n2,30,9\n")
    assert read_trace(path, 2, 2) == ((10, 20), (7, 8))


def test_mistakes_in_a_trace_are_named(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time,rate\n0,10\n1,20\n")
    with pytest.raises(InputError, match="has 2 rows, fewer than steps") as caught:
        read_trace(path, 2, 3)
    assert "--steps 2" in caught.value.hint
    path.write_text("time,load\n0,10\n1,20\n")
    with pytest.raises(InputError, match="no column 'rate-1'"):
        read_trace(path, 2, 2)
    with pytest.raises(InputError):
        read_trace(tmp_path / "none.csv", 2, 2)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"operators": 1}, "operators: must be at least 2"),
        ({"down": 0.9}, "down: must be below up"),
        ({"load": "trace"}, "needs a CSV file"),
        ({"trace": "a.csv"}, "needs a CSV file"),
        ({"load": "sine"}, "load: must be one of"),
        ({"mode": "counted", "crashes": 1}, "mode: counted messages arrive always"),
        ({"message_loss": 1.5}, "message_loss: must be"),
    ],
)
def test_a_setup_refuses_what_cannot_be_simulated(fields: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        DecentralizedSetup(**fields)
