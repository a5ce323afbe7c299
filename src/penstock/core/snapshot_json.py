"""Snapshots from and to parsed JSON, with errors that name field, value and hint."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.core.frozen_dict import FrozenDict, freeze, thaw
from penstock.core.numbers import MAX_SIZE
from penstock.core.snapshot import HostSnapshot, OperatorSnapshot, SliceSnapshot, Snapshot
from penstock.core.vote_count import VoteCount
from penstock.errors import InputError, nearest

#: Version of the snapshot's form. A reader refuses what is newer than itself.
VERSION = 1
#: More replicas than any cluster has; policies may look at each of them.
MAX_REPLICAS = 1_000_000

AMOUNTS = (
    "input_rate",
    "output_rate",
    "queue",
    "service_time_s",
    "service_scv",
    "arrival_scv",
    "rescale_s",
)
SHARES = ("busy", "idle", "backpressured", "cpu", "input_buffer")
SIGNED = ("queue_growth",)
COUNTS = (
    "parallelism",
    "min_parallelism",
    "max_parallelism",
    "useful_parallelism",
    "requested",
)
MEASURES = (*AMOUNTS, *SHARES, *SIGNED)
_OPERATOR_FIELDS = {"upstream", "sent", "votes", *COUNTS, *MEASURES}
_SNAPSHOT_FIELDS = {"version", "at", "offered", "operators", "hosts", "max_hosts"}
_HOST_FIELDS = {"slices", "memory_capacity", "network_capacity"}


def parse_snapshot(data: Any) -> Snapshot:
    """Read a snapshot from parsed JSON; raise `InputError` naming the first wrong field."""
    fields = _object(data, "")
    if "operators" not in fields and "hosts" not in fields:
        problem = "missing: a snapshot has operators (or hosts)"
        raise InputError("operators", problem, _misspelt("operators", fields))
    if _number(fields.get("version", VERSION), "version") != VERSION:
        problem = f"cannot read version {fields['version']}, only {VERSION}"
        raise InputError("version", problem, "a newer penstock wrote this: upgrade to read it")
    operators = {
        _name(name, "operators"): _parse_operator(name, inner)
        for name, inner in _object(fields.get("operators", {}), "operators").items()
    }
    hosts = {
        _name(name, "hosts"): _parse_host(name, inner)
        for name, inner in _object(fields.get("hosts", {}), "hosts").items()
    }
    if not operators and not hosts:
        raise InputError("operators", "is empty: nothing to decide about")
    offered = _rates(fields.get("offered") or {}, "offered")
    _check_known(offered, operators, "offered")
    for name, op in operators.items():
        _check_known(op.sent or {}, operators, f"operators.{name}.sent")
    _slices_are_on_one_host(hosts.values())
    limit = fields.get("max_hosts")
    try:
        return Snapshot(
            at=_number(_required(fields, "at", ""), "at"),
            offered=offered,
            operators=FrozenDict(operators),
            hosts=FrozenDict(hosts),
            max_hosts=None if limit is None else _count(limit, "max_hosts"),
            extra=_rest(fields, _SNAPSHOT_FIELDS),
        )
    except InputError as error:  # the topology's own: unknown upstream, cycle
        raise error if error.field in ("at", "max_hosts") else error.under("operators") from None


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Write a snapshot as plain dictionaries; unknown measures are left out."""
    data: dict[str, Any] = {"at": snapshot.at}
    if snapshot.offered:
        data["offered"] = dict(snapshot.offered)
    if snapshot.operators:
        data["operators"] = {n: _operator_to_json(op) for n, op in snapshot.operators.items()}
    if snapshot.hosts:
        data["hosts"] = {n: _host_to_json(host) for n, host in snapshot.hosts.items()}
    if snapshot.max_hosts is not None:
        data["max_hosts"] = snapshot.max_hosts
    data.update(thaw(snapshot.extra))
    return data


def _parse_operator(name: str, data: Any) -> OperatorSnapshot:
    where = f"operators.{name}"
    fields = _object(data, where)
    _required(fields, "parallelism", where)
    upstream = fields.get("upstream") or []
    if not isinstance(upstream, list | tuple) or not all(isinstance(up, str) for up in upstream):
        raise InputError(f"{where}.upstream", f"must be a list of names, got {upstream!r}")
    sent = fields.get("sent")
    known: dict[str, Any] = {
        "sent": None if sent is None else _rates(sent, f"{where}.sent"),
        "extra": _rest(fields, _OPERATOR_FIELDS),
    }
    if fields.get("votes") is not None:
        known["votes"] = _parse_votes(fields["votes"], f"{where}.votes")
    for key in COUNTS:
        if fields.get(key) is not None:
            known[key] = _count(fields[key], f"{where}.{key}")
    for key in MEASURES:
        if fields.get(key) is not None:
            known[key] = _measure(fields[key], key, where)
    return OperatorSnapshot(name=name, upstream=tuple(upstream), **known)


def _parse_votes(data: Any, where: str) -> VoteCount:
    fields = _object(data, where)
    known: dict[str, Any] = {
        key: _count(_required(fields, key, where), f"{where}.{key}") for key in ("before", "after")
    }
    for key in ("voters", "copies", "stops"):
        known[key] = int(_amount(fields.get(key, 0), f"{where}.{key}"))
    for key in ("load", "capacity"):
        if fields.get(key) is not None:
            known[key] = _amount(fields[key], f"{where}.{key}")
    if fields.get("probability") is not None:
        known["probability"] = _number(fields["probability"], f"{where}.probability")
    return VoteCount(**known, is_fixed=fields.get("is_fixed") is True)


def _parse_host(name: str, data: Any) -> HostSnapshot:
    where = f"hosts.{name}"
    fields = _object(data, where)
    slices = {}
    for piece, inner in _object(_required(fields, "slices", where), f"{where}.slices").items():
        place = f"{where}.slices.{piece}"
        measured = _object(inner, place)
        slices[piece] = SliceSnapshot(
            cpu=_amount(_required(measured, "cpu", place), f"{place}.cpu"),
            memory=_amount(measured.get("memory", 0.0), f"{place}.memory"),
            network=_amount(measured.get("network", 0.0), f"{place}.network"),
        )
    capacities = {
        key: _amount(fields[key], f"{where}.{key}")
        for key in ("memory_capacity", "network_capacity")
        if fields.get(key) is not None
    }
    rest = _rest(fields, _HOST_FIELDS)
    return HostSnapshot(name=name, slices=FrozenDict(slices), extra=rest, **capacities)


def _operator_to_json(op: OperatorSnapshot) -> dict[str, Any]:
    data: dict[str, Any] = {"upstream": list(op.upstream)}
    for key in (*COUNTS, *MEASURES):
        if (value := getattr(op, key)) is not None:
            data[key] = value
    if op.sent is not None:
        data["sent"] = dict(op.sent)
    if op.votes is not None:
        data["votes"] = op.votes.to_json()
    data.update(thaw(op.extra))
    return data


def _host_to_json(host: HostSnapshot) -> dict[str, Any]:
    data: dict[str, Any] = {
        "slices": {
            name: {"cpu": piece.cpu, "memory": piece.memory}
            | ({"network": piece.network} if piece.network else {})
            for name, piece in host.slices.items()
        }
    }
    for key in ("memory_capacity", "network_capacity"):
        if (value := getattr(host, key)) is not None:
            data[key] = value
    data.update(thaw(host.extra))
    return data


def _object(data: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise InputError(where, f"must be an object, got {_shown(data)}")
    return data


def _required(fields: Mapping[str, Any], key: str, where: str) -> Any:
    if fields.get(key) is None:
        path = f"{where}.{key}" if where else key
        raise InputError(path, "missing", _misspelt(key, fields))
    return fields[key]


def _misspelt(key: str, fields: Iterable[str]) -> str:
    return next((f"did you mean {key!r} by {f!r}?" for f in fields if key in nearest(f, [key])), "")


def _name(name: str, where: str) -> str:
    if not name.strip():
        raise InputError(where, "a name must not be empty")
    return name


def _rest(fields: Mapping[str, Any], known: set[str]) -> FrozenDict[str, object]:
    return FrozenDict({key: freeze(value) for key, value in fields.items() if key not in known})


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(where, f"must be a number, got {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(where, f"must be finite, got {_shown(value)}", "leave it out if unknown")
    if abs(number) > MAX_SIZE:
        problem = f"must be at most {MAX_SIZE:g}, got {number:g}"
        raise InputError(where, problem, "leave it out if unknown")
    return number


def _amount(value: Any, where: str) -> float:
    number = _number(value, where)
    if number < 0:
        raise InputError(where, f"must be at least 0, got {value}", "leave it out if unknown")
    return number


def _count(value: Any, where: str) -> int:
    number = _number(value, where)
    if number != int(number) or number < 1:
        raise InputError(where, f"must be a whole number of at least 1, got {value}")
    if number > MAX_REPLICAS:
        raise InputError(where, f"must be at most {MAX_REPLICAS:,}, got {value:,}")
    return int(number)


def _measure(value: Any, key: str, where: str) -> float:
    path = f"{where}.{key}"
    if key in SIGNED:
        return _number(value, path)
    number = _amount(value, path)
    if key in SHARES and number > 1:
        raise InputError(path, f"must be at most 1, got {value}", "shares go from 0 to 1")
    return number


def _rates(data: Any, where: str) -> FrozenDict[str, float]:
    rates = _object(data, where)
    return FrozenDict({name: _amount(rate, f"{where}.{name}") for name, rate in rates.items()})


def _check_known(names: Iterable[str], operators: Mapping[str, Any], where: str) -> None:
    for name in names:
        if name not in operators:
            raise InputError(f"{where}.{name}", "unknown operator", nearest(name, operators))


def _slices_are_on_one_host(hosts: Iterable[HostSnapshot]) -> None:
    home: dict[str, str] = {}
    for host in hosts:
        for piece in host.slices:
            if piece in home:
                problem = f"is on host {home[piece]!r} too"
                raise InputError(f"hosts.{host.name}.slices.{piece}", problem)
            home[piece] = host.name


def _shown(value: Any) -> str:
    text = repr(thaw(value))
    return text if len(text) <= 60 else f"{text[:57]}..."
