"""Recorded load: a CSV file, or the bursty one that ships with penstock."""

import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.files.text import explain_os_error
from penstock.workloads.pattern import RATE, Pattern, Request
from penstock.workloads.trace_csv import Columns, read_table
from penstock.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback(Params):
    """How a recording is played."""

    scale: float = param(1.0, "factor on every rate", low=0)
    mean: float | None = param(
        None, "mean rate to scale to, over the requested time", unit=RATE, low=0, above=True
    )
    speed_up: float = param(
        1.0, "how many times faster, at the same rates", low=0, above=True, high=10_000
    )
    start: float = param(0.0, "where in the recording to begin", unit="min", low=0)
    resample: float = param(0.0, "mean over that time; 0: as recorded", unit="s", low=0)
    repeat: bool = param(True, "begin again when the recording is over")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceParams(Playback):
    """The file of a recording, and how it is played."""

    file: str = param("", "CSV file with a header line")
    time: str = param("", "column of times: seconds or ISO time stamps")
    rate: str = param("", "column of rates (records/s)")
    count: str = param("", "column of records since this row's time until the next row's")
    repeat: bool = param(False, "begin again when the recording is over")


def play(recording: Workload, params: Playback, request: Request) -> Workload:
    """Return the requested part of a recording: sped up, resampled, repeated, scaled."""
    begin_s, wanted_s = params.start * 60, request.minutes * 60.0
    if begin_s >= recording.duration_s:
        problem = f"must be below the recording's {recording.duration_s / 60:g} minutes"
        raise InputError("start", f"{problem}, got {params.start:g}")
    load = recording.between(begin_s, recording.duration_s).sped_up(params.speed_up)
    if load.duration_s < wanted_s - 1e-6:
        load = _repeated(load, recording.sped_up(params.speed_up), params, wanted_s)
    load = load.between(0, wanted_s)
    if params.resample:
        load = _resampled(load, params.resample)
    if params.mean is not None:
        if load.mean_rate == 0:
            raise InputError("mean", "cannot be reached: this part of the recording has no load")
        load = load * (params.mean / load.mean_rate)
    return load * params.scale


def _repeated(rest: Workload, whole: Workload, params: Playback, wanted_s: float) -> Workload:
    if not params.repeat:
        minutes = math.floor(rest.duration_s / 60 + 1e-9)
        hint = f"ask for at most {minutes} minutes, or set repeat=true"
        problem = f"the recording lasts {minutes} minutes, not {wanted_s / 60:g}"
        raise InputError("minutes", problem, hint)
    times = math.ceil((wanted_s - rest.duration_s) / whole.duration_s)
    shifts = rest.duration_s + whole.duration_s * np.arange(times)[:, None]
    edges = (shifts + np.array(whole.edges_s[1:])).ravel()
    return Workload(
        edges_s=rest.edges_s + tuple(edges.tolist()),
        starts=rest.starts + whole.starts * times,
        ends=rest.ends + whole.ends * times,
    )


def _resampled(load: Workload, step_s: float) -> Workload:
    means = load.mean_rates(step_s)
    return Workload.of_steps(means, step_s).between(0, load.duration_s)


def trace(params: TraceParams, request: Request) -> Workload:
    """Read a CSV file and play it."""
    if not params.file:
        raise InputError("file", "is missing", "a trace needs one, such as file=load.csv")
    columns = Columns(time=params.time, rate=params.rate, count=params.count)
    try:
        with Path(params.file).open(encoding="utf-8-sig", newline="") as lines:
            recording = read_table(lines, columns, params.file)
    except FileNotFoundError:
        raise InputError("file", f"there is no file {params.file!r}") from None
    except (OSError, ValueError) as error:
        raise InputError("file", f"cannot be read: {explain_os_error(error)}") from None
    return play(recording, params, request)


def bursty(params: Playback, request: Request) -> Workload:
    """Play the recording that ships with penstock (`penstock.workloads.bursty` made it)."""
    lines = (files("penstock.workloads") / "data" / "bursty.csv").read_text("utf-8").splitlines()
    return play(read_table(lines, Columns(), "bursty.csv"), params, request)


PATTERNS = (
    Pattern(
        name="trace",
        summary="your own recording, from CSV",
        source="a file",
        build=trace,
        params=TraceParams,
    ),
    Pattern(
        name="bursty",
        summary="12 hours like those of a social network: spikes, echoes and lulls",
        source="ours, synthetic; after the Twitter load of predictive replication in Storm, V-A",
        build=bursty,
        params=Playback,
        arrivals="poisson",
    ),
)
