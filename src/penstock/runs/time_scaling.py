"""Divides the times of a workload and of the loop by a factor.

Service times, rates and objectives stay: a replica has the same capacity, and the workload gets as
many decisions.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from penstock.core.frozen_dict import FrozenDict
from penstock.core.params import Params, ParamSpec
from penstock.errors import InputError

P = TypeVar("P", bound=Params)


def speed_up_params(params: P, factor: float) -> P:
    """Return parameters of a policy, or guards, with their times divided by a factor.

    >>> from penstock.core.guards import Guards
    >>> guards = speed_up_params(Guards(cooldown_s=300.0, budget=80), 20)
    >>> guards.cooldown_s, guards.budget
    (15.0, 80)
    """
    times = {item.name for item in fields(params) if _is_scaled_time(item.metadata["spec"])}
    return params.but(**{name: _divided(getattr(params, name), factor) for name in times})


def check_speed_up(factor: float) -> float:
    """Refuse a factor that no run can have."""
    if not 0 < factor < math.inf:
        raise InputError("--speed-up", f"must be above 0 and finite, got {factor:g}")
    return factor


def _is_scaled_time(spec: ParamSpec) -> bool:
    return spec.unit == "s" and spec.is_scaled


def _divided(value: Any, factor: float) -> Any:
    if isinstance(value, Mapping):
        return FrozenDict({key: number / factor for key, number in value.items()})
    return None if value is None else value / factor
