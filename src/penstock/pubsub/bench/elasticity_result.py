"""What an experiment on elasticity measured: periods of time, and figures of all of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.pubsub.bench.broker_traffic import NoticeTimes
from penstock.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """The load of each host, as a share of its core, at one moment."""

    at_s: float
    loads: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticityPeriod:
    """Some seconds; a measure without samples is None."""

    begin_s: float
    seconds: float
    offered_per_s: float
    notified_per_s: float
    #: The most hosts at one moment, and the least and the highest load of one, and their mean.
    hosts: int | None
    cpu_min: float | None
    cpu_mean: float | None
    cpu_max: float | None
    #: Of the publications that were due in the period.
    delay_mean_s: float | None
    delay_std_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticityResult:
    """Figures of one experiment."""

    periods: tuple[ElasticityPeriod, ...]
    published: int
    hosts_first: int
    hosts_most: int
    hosts_last: int
    #: Slices that were moved.
    moves: int
    #: The mean load of the hosts, while there were several.
    cpu_mean: float | None
    delay_p50_s: float
    delay_p95_s: float
    checked_publications: int
    wrong_publications: int
    load_average: float


def cut_periods(
    load: Workload, samples: Sequence[HostSample], times: NoticeTimes, period_s: float
) -> tuple[ElasticityPeriod, ...]:
    """Return the experiment in periods, up to the last sample of its hosts."""
    end_s = max(load.duration_s, *(sample.at_s for sample in samples))
    begins = np.arange(0.0, end_s, period_s).tolist()
    return tuple(_measure(load, samples, times, begin_s, period_s) for begin_s in begins)


def _measure(
    load: Workload,
    samples: Sequence[HostSample],
    times: NoticeTimes,
    begin_s: float,
    period_s: float,
) -> ElasticityPeriod:
    end_s = begin_s + period_s
    inside = [sample.loads for sample in samples if begin_s <= sample.at_s < end_s]
    is_done = (times.done_s >= begin_s) & (times.done_s < end_s)
    is_due = (times.due_s >= begin_s) & (times.due_s < end_s)
    delays_s = times.delays_s[is_due]
    means = [sum(loads) / len(loads) for loads in inside if loads]
    return ElasticityPeriod(
        begin_s=begin_s,
        seconds=period_s,
        offered_per_s=(load.integral(end_s) - load.integral(begin_s)) / period_s,
        notified_per_s=float(np.count_nonzero(is_done)) / period_s,
        hosts=max(map(len, inside), default=None),
        cpu_min=min((min(loads) for loads in inside if loads), default=None),
        cpu_mean=sum(means) / len(means) if means else None,
        cpu_max=max((max(loads) for loads in inside if loads), default=None),
        delay_mean_s=float(delays_s.mean()) if len(delays_s) else None,
        delay_std_s=float(delays_s.std()) if len(delays_s) else None,
    )


def compute_mean_load(samples: Sequence[HostSample]) -> float | None:
    """Return the mean load of hosts over the time in which there were several."""
    means = [sum(s.loads) / len(s.loads) for s in samples if len(s.loads) > 1]
    return sum(means) / len(means) if means else None
