"""Exact results of queueing theory, as an oracle that knows nothing of the simulator.

Arrivals are Poisson with `rate` records/s, `mean_s` is the mean service time; all answers
are of the steady state.
"""


def erlang_b(load: float, servers: int) -> float:
    """The share of records lost if none may wait, for `load` busy servers on average.

    >>> round(erlang_b(2.0, 3), 4)
    0.2105
    """
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked


def erlang_c(load: float, servers: int) -> float:
    """The share of records that have to wait if any number may.

    >>> round(erlang_c(2.0, 3), 4), round(erlang_c(0.7, 1), 4)
    (0.4444, 0.7)
    """
    blocked = erlang_b(load, servers)
    return blocked / (1 - load / servers * (1 - blocked))


def mmk_wait_s(rate: float, mean_s: float, servers: int) -> float:
    """Mean waiting time with exponential service and one queue for all servers (M/M/k).

    >>> round(mmk_wait_s(rate=0.5, mean_s=1.0, servers=1), 6)
    1.0
    """
    load = rate * mean_s
    return erlang_c(load, servers) * mean_s / (servers - load)


def mg1_wait_s(rate: float, mean_s: float, scv: float) -> float:
    """Mean waiting time with any service time and one server (Pollaczek-Khinchine).

    >>> mg1_wait_s(0.5, 1.0, scv=1) == mmk_wait_s(0.5, 1.0, 1)
    True
    """
    load = rate * mean_s
    return load / (1 - load) * mean_s * (1 + scv) / 2
