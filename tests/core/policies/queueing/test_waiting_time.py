"""The queueing formula against exact M/M/k."""

import math

import pytest

from penstock.core.policies.queueing.waiting_time import response_time_s


def erlang_c(offered: float, servers: int) -> float:
    """Exact probability of waiting in M/M/k, by the recursion of Erlang B."""
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    utilisation = offered / servers
    return blocked / (1 - utilisation * (1 - blocked))


def exact_response_s(arrival_rate: float, servers: int) -> float:
    return 1 + erlang_c(arrival_rate, servers) / (servers - arrival_rate)


@pytest.mark.parametrize(
    ("arrivals", "mu", "k", "ca2", "cs2", "expected"),
    [
        (0.8, 1, 1, 1, 1, 5.0),
        (2.4, 1, 3, 1, 1, 2.093333),
        (2.4, 1, 4, 1, 0.5, 1.130713),
        (3.0, 1, 3, 1, 1, math.inf),
        (0.0, 2, 1, 1, 1, 0.5),
    ],
)
def test_worked_examples(
    arrivals: float, mu: float, k: int, ca2: float, cs2: float, expected: float
) -> None:
    assert response_time_s(arrivals, 1 / mu, k, ca2, cs2) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("utilisation", [0.1, 0.3, 0.5, 0.69, 0.7, 0.9, 0.99])
def test_one_server_is_exact(utilisation: float) -> None:
    assert response_time_s(utilisation, 1.0, 1, 1, 1) == pytest.approx(1 / (1 - utilisation))


def test_the_error_of_the_approximation_over_a_grid() -> None:
    """Up to 32 servers the response time is within 6 % of exact M/M/k, up to 0.95 utilisation."""
    errors = []
    for servers in range(1, 33):
        for percent in range(5, 96):
            arrivals = servers * percent / 100
            exact = exact_response_s(arrivals, servers)
            errors.append(abs(response_time_s(arrivals, 1.0, servers, 1, 1) / exact - 1))
    assert max(errors) < 0.06
    assert sum(errors) / len(errors) < 0.01
