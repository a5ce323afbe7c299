"""Which parameters get shorter when a run is sped up, and which must not."""

import pytest

from penstock.control.registry import builtin_policies
from penstock.core.frozen_dict import FrozenDict
from penstock.core.guards import Guards
from penstock.core.params import Params
from penstock.core.policies.psps import PspsParams
from penstock.core.policies.queueing.policy import QueueingParams
from penstock.errors import InputError
from penstock.runs.time_scaling import check_speed_up, speed_up_params

#: Every parameter that is a time of the loop. A policy with a new one must be decided about here.
TIMES = {
    "dabs": {"interval_s"},
    "ds2": {"memory_s"},
    "enforcer": {"hold_s", "grace_s"},
    "flink": {
        "window_s", "stabilization_s", "catch_up_s", "restart_s", "scale_down_interval_s",
        "backlog_s",
    },
    "hpa-cpu": {"window_s"},
    "hpa-varga": {"window_s"},
    "psps": {"interval_s"},
    "slo": {"lookback_s"},
    "streaming-dra": {"interval_s"},
}  # fmt: skip
GUARD_TIMES = {
    "stabilise_s": 300.0,
    "cooldown_s": 300.0,
    "cooldown_up_s": 30.0,
    "cooldown_down_s": 600.0,
}


def values(params: Params) -> dict[str, object]:
    """Parameters as they are."""
    return {item.name: getattr(params, item.name) for item in type(params).describe()}


@pytest.mark.parametrize("name", builtin_policies())
def test_only_times_of_the_loop_are_divided(name: str) -> None:
    params = builtin_policies()[name].params()
    before, after = values(params), values(speed_up_params(params, 20))
    divided = {key for key in before if before[key] != after[key]}
    assert divided == TIMES.get(name, set())
    for key in divided:
        assert after[key] == pytest.approx(before[key] / 20)  # type: ignore[operator]


def test_service_times_and_objectives_stay() -> None:
    measured = PspsParams(service_time_s=FrozenDict(map=0.3))
    assert speed_up_params(measured, 20).service_time_s == {"map": 0.3}
    assert speed_up_params(QueueingParams(r_max=5.0), 20).r_max == 5.0
    assert speed_up_params(Guards(hold_while_draining=5.0), 20).hold_while_draining == 5.0


def test_all_times_of_guards_are_divided_and_nothing_else() -> None:
    asked = Guards(**GUARD_TIMES, overprovision=1.2, tolerance=0.1, budget=80, max_increase=15)
    got = speed_up_params(asked, 10)
    for name, value in GUARD_TIMES.items():
        assert getattr(got, name) == pytest.approx(value / 10)
    assert (got.overprovision, got.tolerance, got.budget, got.max_increase) == (1.2, 0.1, 80, 15)


def test_what_is_off_stays_off() -> None:
    assert speed_up_params(Guards(), 20) == Guards()


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_a_factor_that_no_run_can_have(factor: float) -> None:
    with pytest.raises(InputError, match="--speed-up"):
        check_speed_up(factor)
