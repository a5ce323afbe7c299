"""Response time of a station with several servers: the Allen-Cunneen approximation of GI/G/k."""

import math


def waiting_probability(utilisation: float, servers: int) -> float:
    """Approximate probability that a record finds all servers busy.

    Bolch et al., "Queueing Networks and Markov Chains". The Pulsar paper prints a square
    root in the second exponent, which cannot be meant: for one server it must be `rho`.

    >>> waiting_probability(0.5, 1), waiting_probability(0.8, 1)
    (0.5, 0.8)
    """
    if utilisation >= 0.7:
        return (utilisation**servers + utilisation) / 2
    return float(utilisation ** ((servers + 1) / 2))


def response_time_s(
    arrival_rate: float, service_time_s: float, servers: int, arrival_scv: float, service_scv: float
) -> float:
    """Mean seconds from arrival to completion; infinite when the servers cannot keep up.

    T = 1/mu + (ca2 + cs2) / (2 k) * Pk / (mu (1 - rho))

    >>> round(response_time_s(0.8, 1.0, 1, 1.0, 1.0), 6), response_time_s(2.4, 1.0, 2, 1.0, 1.0)
    (5.0, inf)
    """
    utilisation = arrival_rate * service_time_s / servers
    if utilisation >= 1:
        return math.inf
    variability = (arrival_scv + service_scv) / (2 * servers)
    waiting = variability * waiting_probability(utilisation, servers) / (1 - utilisation)
    return service_time_s * (1 + waiting)
