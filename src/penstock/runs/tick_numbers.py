"""The numbers of one tick that curves show, from its line in the journal as plain dictionaries.

It reads the JSON of a tick directly: building all objects of a tick takes ten times as long, and
a page reads a hundred thousand of them. A field of a wrong form is unknown, never an error.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.core.histogram import GROWTH, SMALLEST_S

#: A column: the measure, and the operator it is about ("" for the whole run).
Column = tuple[str, str]
#: Measures of operators that a snapshot has.
OPERATOR_MEASURES = (
    *("input_rate", "output_rate", "busy", "idle", "backpressured", "queue", "queue_growth"),
)


def tick_numbers(data: Mapping[str, Any], before: Mapping[str, Any]) -> dict[Column, float]:
    """Return the known numbers of a tick; rates are those since the tick before it."""
    numbers: dict[Column, float] = {}
    numbers.update(_replicas(data))
    numbers.update(_records(data, before))
    numbers.update(_latency(data))
    numbers.update(_measures(data))
    numbers.update(_hosts(data))
    numbers.update(_instances(data))
    return numbers


def _replicas(data: Mapping[str, Any]) -> Iterator[tuple[Column, float]]:
    running, requested = _table(data, "running"), _table(data, "requested")
    for name, replicas in running.items():
        yield ("running", name), replicas
    for name, replicas in requested.items():
        yield ("requested", name), replicas
    if running:
        yield ("replicas", ""), sum(running.values())
    wanted = wanted_replicas(data)
    for name, replicas in wanted.items():
        yield ("wanted", name), replicas
    if wanted and wanted.keys() <= running.keys():  # hosts are no replicas of an operator
        yield ("wanted_replicas", ""), sum({**running, **wanted}.values())
    for key in ("executors", "executors_requested"):
        if _is_number(data.get(key)):
            yield (key, ""), data[key]


def wanted_replicas(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the replicas that the decision of a tick wants, by operator; hosts under `hosts`."""
    decision = data.get("decision")
    if not isinstance(decision, Mapping):
        return {}
    targets, hosts = decision.get("targets", {}), decision.get("hosts")
    if isinstance(hosts, Mapping) and _is_number(hosts.get("wanted")):
        return {"hosts": hosts["wanted"]}
    if not isinstance(targets, Mapping):
        return {}
    return {
        name: target["wanted"]
        for name, target in targets.items()
        if isinstance(target, Mapping) and _is_number(target.get("wanted"))
    }


def _records(data: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[tuple[Column, float]]:
    now, last = _table(data, "records"), _table(before, "records")
    if "backlog" in now:
        yield ("backlog", ""), now["backlog"]
    if "dropped" in now:
        yield ("dropped", ""), now["dropped"]
    start_s = before["at"] if _is_number(before.get("at")) else 0.0
    seconds = data["at"] - start_s if _is_number(data.get("at")) else 0.0
    if seconds > 0:
        for key in ("offered", "processed"):
            gained = now.get(key, 0) - last.get(key, 0)
            if key in now and gained >= 0:
                yield (f"{key}_rate", ""), gained / seconds


def _latency(data: Mapping[str, Any]) -> Iterator[tuple[Column, float]]:
    counts: dict[int, float] = {}
    longest = 0.0
    paths = data.get("latency")
    for histogram in paths.values() if isinstance(paths, Mapping) else ():
        try:
            for bucket, records in histogram["counts"].items():
                counts[int(bucket)] = counts.get(int(bucket), 0.0) + records
            longest = max(longest, histogram["max"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return
    if counts:
        for percent, value in zip((50, 95), _percentiles(counts, longest), strict=True):
            yield (f"latency_p{percent}", ""), value


def _percentiles(counts: Mapping[int, float], longest: float) -> tuple[float, float]:
    """Return the median and the 95th percentile, as `Histogram.percentile` does."""
    total = sum(counts.values())
    ranks, values, seen = (0.5 * total, 0.95 * total), [longest, longest], 0.0
    place = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        while place < 2 and seen >= ranks[place] - 1e-9:
            middle = SMALLEST_S * GROWTH ** (bucket - 0.5) if bucket else 0.0
            values[place] = min(middle, longest)
            place += 1
    return values[0], values[1]


def _measures(data: Mapping[str, Any]) -> Iterator[tuple[Column, float]]:
    snapshot = data.get("snapshot")
    operators = snapshot.get("operators") if isinstance(snapshot, Mapping) else None
    for name, measures in operators.items() if isinstance(operators, Mapping) else ():
        for key in OPERATOR_MEASURES if isinstance(measures, Mapping) else ():
            value = measures.get(key)
            if _is_number(value):
                yield (key, name), value
    if not operators:
        for name, rows in _table(data, "queues").items():  # before the first snapshot
            yield ("queue", name), rows


def _hosts(data: Mapping[str, Any]) -> Iterator[tuple[Column, float]]:
    """Yield the number of hosts, their loads, and the slices that a decision moves."""
    snapshot = data.get("snapshot")
    hosts = snapshot.get("hosts") if isinstance(snapshot, Mapping) else None
    loads = []
    for host in hosts.values() if isinstance(hosts, Mapping) else ():
        pieces = host.get("slices", {}) if isinstance(host, Mapping) else {}
        if isinstance(pieces, Mapping):
            shares = (piece.get("cpu") for piece in pieces.values() if isinstance(piece, Mapping))
            loads.append(sum(float(share) for share in shares if share and _is_number(share)))
    if loads:
        decision = data.get("decision")
        moves = decision.get("moves", ()) if isinstance(decision, Mapping) else ()
        is_applied = data.get("applied") is True and isinstance(moves, list)
        yield ("hosts", ""), len(loads)
        yield ("host_load_mean", ""), sum(loads) / len(loads)
        yield ("host_load_max", ""), max(loads)
        yield ("host_load_min", ""), min(loads)
        yield ("moves", ""), len(moves) if is_applied else 0


def _instances(data: Mapping[str, Any]) -> Iterator[tuple[Column, float]]:
    """Yield what instances decided alone, the messages between them, and how many would do."""
    snapshot = data.get("snapshot")
    operators = snapshot.get("operators") if isinstance(snapshot, Mapping) else None
    totals: dict[str, float] = {}
    for name, measures in operators.items() if isinstance(operators, Mapping) else ():
        if not isinstance(measures, Mapping):
            continue
        votes, states = _table(measures, "votes"), _table(measures, "instances")
        known: dict[str, float] = {key: votes[key] for key in ("copies", "stops") if key in votes}
        known |= {"ideal": states["ideal"]} if "ideal" in states else {}
        if _is_number(measures.get("messages")):
            known["messages"] = measures["messages"]
            yield ("messages", name), known["messages"]
        for key, value in known.items():
            totals[key] = totals.get(key, 0) + value
    for key, value in totals.items():
        yield (key, ""), value


def _table(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    values = data.get(key)
    if not isinstance(values, Mapping):
        return {}
    return {name: value for name, value in values.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
