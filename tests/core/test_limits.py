"""Numbers at the limits: policies answer, or say that measures are missing."""

import math
from itertools import product

import pytest

from penstock.control.registry import builtin_policies
from penstock.core.numbers import MAX_COUNT, ceil, floor, ratio
from penstock.core.params import Params
from penstock.core.policies.decentralized import POLICY as DECENTRALIZED
from penstock.core.policy import Policy
from penstock.core.snapshot_json import MAX_REPLICAS, parse_snapshot
from penstock.errors import InputError

OPERATOR = {
    "upstream": [],
    "parallelism": 5,
    "input_rate": 1000.0,
    "output_rate": 1000.0,
    "busy": 0.8,
    "idle": 0.2,
    "cpu": 0.7,
    "queue": 5.0,
    "queue_growth": 0.0,
    "service_time_s": 0.004,
    "input_buffer": 0.1,
}


def test_rounding_of_what_is_too_large_ends_at_the_largest_count() -> None:
    for value in (math.inf, 1e300, 1e16):
        assert ceil(value) == floor(value) == MAX_COUNT
        assert ceil(-value) == floor(-value) == -MAX_COUNT


def test_a_ratio_that_cannot_be_computed_with_is_unknown() -> None:
    for part, whole in ((1, 0), (1, 5e-324), (5e-324, 4), (1e300, 1e-300)):
        assert ratio(part, whole) is None
    assert ratio(0.0, 3) == 0


@pytest.mark.parametrize("value", [1e16, 1e300, 10**400])
def test_more_replicas_than_any_cluster_has_are_refused(value: float) -> None:
    line = {"at": 0, "operators": {"a": OPERATOR | {"parallelism": value}}}
    with pytest.raises(InputError, match=r"parallelism: must be"):
        parse_snapshot(line)


@pytest.mark.parametrize("field", ["input_rate", "queue", "queue_growth", "service_time_s"])
def test_measures_that_sums_and_products_turn_into_nan_are_refused(field: str) -> None:
    """A line through rates of 1e300 has infinite parts, and their difference is no number."""
    for value in (1e19, 1e300, 10**400):
        line = {"at": 0, "operators": {"a": OPERATOR | {field: value}}}
        with pytest.raises(InputError, match=rf"a\.{field}: must be (at most 1e\+18|finite)"):
            parse_snapshot(line)


def test_the_largest_operator_is_decided_about_instance_by_instance() -> None:
    line = {"at": 0, "operators": {"a": OPERATOR | {"parallelism": MAX_REPLICAS}}}
    answer = DECENTRALIZED.decide([parse_snapshot(line)], [], DECENTRALIZED.params())
    assert 1 <= answer.targets["a"].wanted <= MAX_REPLICAS


@pytest.mark.parametrize(
    "policy",
    [p for p in builtin_policies().values() if p.reads == "operators"],
    ids=lambda p: p.name,
)
def test_every_policy_answers_about_extreme_measures(policy: Policy) -> None:
    fields = [name for name, value in OPERATOR.items() if isinstance(value, float)]
    for field, value in product([*fields, "offered"], (0.0, 5e-324, 1e-18, 1.0, 1e17, 1e18)):
        changed = {} if field == "offered" else {field: value}
        offered = value if field == "offered" else 900.0
        lines = [
            {"at": at, "offered": {"a": offered}, "operators": {"a": OPERATOR | changed}}
            for at in (0, 30)
        ]
        try:
            history = [parse_snapshot(line) for line in lines]
        except InputError:  # a share above one
            continue
        params: Params = policy.measure_once(policy.params(), history[0])
        target = policy.decide(history, [], params).targets["a"]
        assert 1 <= target.wanted <= MAX_COUNT and "nan" not in target.why
