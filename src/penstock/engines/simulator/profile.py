"""Profiles: how an engine behaves and what its monitor shows, one TOML file per engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.core.params import Params, param
from penstock.engines.simulator.batches.model import Batches
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.pipeline_file import parse_pipeline
from penstock.engines.simulator.records.model import QUEUES
from penstock.errors import InputError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaling(Params):
    """Costs of a change of parallelism."""

    scope: str = param(
        "operator", "who stops for a change", choices=("nobody", "native", "operator", "job")
    )
    pause_s: float = param(0.0, "how long they stop", unit="s", low=0)
    pause_s_per_gb: float = param(0.0, "how much longer for each GB of state", unit="s", low=0)
    delay_s: float = param(0.0, "from the decision to its effect", unit="s", low=0)
    warmup_s: float = param(0.0, "time until new replicas reach full speed", unit="s", low=0)
    warmup_speed: float = param(1.0, "their speed at the start", low=0, above=True, high=1)
    drops_queues: bool = param(False, "what waits between operators is lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues(Params):
    """Queues of the engine."""

    buffer_s: float | None = param(
        None, "work that fits in front of an operator; none: unbounded", unit="s", low=0, above=True
    )
    retention_s: float | None = param(
        None, "age at which the source topic drops records", unit="s", low=0, above=True
    )
    retention_block_s: float = param(0.0, "drops come in blocks of this long", unit="s", low=0)
    hop_s: float = param(0.0, "latency of one operator besides waiting", unit="s", low=0)
    batch_s: float = param(0.0, "micro-batches of this long; 0: none", unit="s", low=0)
    queue: str = param(
        "shared", "single records: one queue, or one a replica and how", choices=QUEUES
    )
    arrival_scv: float = param(1.0, "single records: 0 even, 1 Poisson, more in bursts", low=0)
    queue_size: int | None = param(
        None, "single records: most that may wait", unit="records", low=0
    )
    timeout_s: float | None = param(None, "single records: age at which to drop", unit="s", low=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor(Params):
    """How measurements differ from the true values."""

    scrape_s: float = param(5.0, "how often measures are taken", unit="s", low=0, above=True)
    window_s: float = param(15.0, "what they are averaged over", unit="s", low=0, above=True)
    slope_window_s: float = param(60.0, "what the lag's slope is taken over", unit="s", low=0)
    lag_slope: str = param(
        "regression", "how the slope is taken", choices=("regression", "gauge-rate")
    )
    busy_sees: float = param(1.0, "share of work that busy time sees", low=0, above=True, high=1)
    cpu_floor: float = param(0.0, "CPU of an idle replica", low=0, high=1)
    cpu_ceiling: float = param(1.0, "CPU of a replica that works flat out", low=0, high=1)
    missing: float = param(0.0, "share of scrapes that fail", low=0, high=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Params):
    """How often the policy decides."""

    interval_s: float = param(15.0, "time between two decisions", unit="s", low=0, above=True)
    sleeps: bool = param(False, "nothing is measured during a cool-down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One engine with its monitor and the guards of its experiments."""

    name: str
    summary: str = ""
    #: "fluid"; "records" or "batches" to simulate each record or micro-batch; "hosts" for slices
    #: that share hosts.
    resolution: str = "fluid"
    rescaling: Rescaling = field(default_factory=Rescaling)
    queues: Queues = field(default_factory=Queues)
    batches: Batches = field(default_factory=Batches)
    monitor: Monitor = field(default_factory=Monitor)
    #: Fields of the monitor that differ for single policies, which used other metric queries.
    monitor_for: Mapping[str, Mapping[str, Any]] = field(default_factory=FrozenDict)
    loop: Loop = field(default_factory=Loop)
    #: Guards of the set-up, and additional ones of single policies.
    guards: Mapping[str, Any] = field(default_factory=FrozenDict)
    guards_for: Mapping[str, Mapping[str, Any]] = field(default_factory=FrozenDict)
    max_replicas: int | None = None
    #: The runs that it was calibrated with, if any.
    runs: tuple[str, ...] = ()
    #: Pipelines that were measured on this engine; others come from the library.
    pipelines: Mapping[str, SimulatedPipeline] = field(default_factory=FrozenDict)

    def monitor_of(self, policy: str) -> Monitor:
        """Return the monitor for one policy."""
        return self.monitor.but(**self.monitor_for.get(policy, {}))

    def guards_of(self, policy: str) -> dict[str, Any]:
        """Return the guards of the set-up for one policy."""
        return {**self.guards, **self.guards_for.get(policy, {})}


_SECTIONS: dict[str, type[Params]] = {
    "rescaling": Rescaling,
    "queues": Queues,
    "batches": Batches,
    "monitor": Monitor,
    "loop": Loop,
}
_PLAIN = ("summary", "resolution", "runs", "max_replicas", "guards")
_FLUID_QUEUES = ("buffer_s", "retention_s", "retention_block_s", "hop_s", "batch_s")
_RECORD_QUEUES = ("queue", "arrival_scv", "queue_size", "timeout_s")
_RESCALING = ("scope", "pause_s", "delay_s")

#: The fields that a resolution uses of a section; it uses all fields of a section not listed here.
_USED: dict[str, dict[str, tuple[str, ...]]] = {
    "fluid": {"queues": _FLUID_QUEUES, "batches": ()},
    # its monitor is exact, and a restart always drops the queues
    "records": {"rescaling": _RESCALING, "queues": _RECORD_QUEUES, "monitor": (), "batches": ()},
    # queues and measurements come from the micro-batch engine's code
    "batches": {
        "rescaling": (*_RESCALING, "pause_s_per_gb", "warmup_s", "warmup_speed"),
        "queues": (),
        "monitor": ("window_s",),
    },
    "hosts": {
        "rescaling": ("pause_s", "pause_s_per_gb"),
        "queues": ("hop_s",),
        "monitor": ("window_s",),
        "batches": (),
    },
}
RESOLUTIONS = tuple(_USED)


def parse_profile(name: str, data: Mapping[str, Any]) -> Profile:
    """Read a profile from parsed TOML; a section `x.policy` applies to that policy only."""
    data = _rename_level(data)
    known = [*_SECTIONS, *_PLAIN, "pipelines"]
    for key in data:
        if key not in known:
            raise InputError(key, "unknown section", nearest(key, known))
    resolution = data.get("resolution", "fluid")
    check_resolution(resolution)
    values: dict[str, Any] = {key: data[key] for key in _PLAIN if key in data}
    guards, guards_for = _split(data.get("guards", {}))
    monitor, monitor_for = _split(data.get("monitor", {}))
    sections = {**data, "monitor": monitor}
    for section in _SECTIONS:
        values[section] = _section(resolution, section, sections.get(section, {}), section)
    for policy, own in monitor_for.items():
        _section(resolution, "monitor", own, f"monitor.{policy}")
    values["runs"] = tuple(data.get("runs", ()))
    values["pipelines"] = FrozenDict(
        {query: _pipeline(query, fields) for query, fields in data.get("pipelines", {}).items()}
    )
    values |= {"guards": guards, "guards_for": guards_for, "monitor_for": monitor_for}
    return Profile(name=name, **values)


def _rename_level(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read profiles of older versions, which call the resolution `level`."""
    if "level" not in data or "resolution" in data:
        return data
    return {"resolution" if key == "level" else key: value for key, value in data.items()}


def _section(resolution: str, section: str, given: Mapping[str, Any], where: str) -> Params:
    """Read a section; refuse fields without an effect at this resolution."""
    try:
        parsed = _SECTIONS[section].parse(given)
        check_used(resolution, section, given)
    except InputError as error:
        raise error.under(where) from None
    return parsed


def check_resolution(resolution: object) -> None:
    """Refuse an unknown resolution."""
    if resolution not in RESOLUTIONS:
        raise InputError(
            "resolution",
            f"unknown resolution {resolution!r}",
            nearest(str(resolution), RESOLUTIONS),
        )


def check_used(resolution: str, section: str, names: Iterable[str]) -> None:
    """Refuse fields of a section that have no effect at this resolution.

    Accepting them would suggest that they were simulated.

    >>> check_used("batches", "queues", ["hop_s"])
    Traceback (most recent call last):
    penstock.errors.InputError: hop_s: changes nothing at resolution batches
    hint: it is used at resolution fluid and hosts
    """
    for name in names:
        users = [user for user in RESOLUTIONS if name in _USED[user].get(section, (name,))]
        if resolution not in users:
            hint = f"it is used at resolution {' and '.join(users)}"
            raise InputError(name, f"changes nothing at resolution {resolution}", hint)


def _pipeline(name: str, data: Mapping[str, Any]) -> SimulatedPipeline:
    try:
        return parse_pipeline(name, data)
    except InputError as error:
        raise error.under(f"pipelines.{name}") from None


def with_changes(profile: Profile, changes: Mapping[str, Any]) -> Profile:
    """Return a profile with single fields changed, named as `section.field`."""
    for path, value in changes.items():
        section, _, name = path.partition(".")
        if section not in _SECTIONS or not name:
            hint = f"write section.field, with a section of {', '.join(_SECTIONS)}"
            raise InputError(f"profile.{path}", "unknown", hint)
        part = getattr(profile, section)
        given = _section(profile.resolution, section, {name: value}, f"profile.{section}")
        profile = replace(profile, **{section: part.but(**{name: getattr(given, name)})})
        if section == "monitor":  # an explicit change applies to every policy
            single = {policy: _without(own, name) for policy, own in profile.monitor_for.items()}
            profile = replace(profile, monitor_for=single)
    return profile


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _split(section: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a section into its own fields and the tables of single policies."""
    plain = {key: value for key, value in section.items() if not isinstance(value, Mapping)}
    single = {key: dict(value) for key, value in section.items() if isinstance(value, Mapping)}
    return plain, single
