"""The hosts of a publish/subscribe run at one moment as JSON: slices, moves, delay."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.core.snapshot import HostSnapshot
from penstock.dashboard.run_reader import RunReader

#: Hosts, slices of one host, and moves that are listed; the counts are always those of all.
MAX_HOSTS, MAX_SLICES, MAX_MOVES = 200, 500, 100
#: Changes that are read backwards to find the last moves, or ticks where changes are not known.
_MAX_CHANGES, _MAX_TICKS = 10, 250
#: A slice is its operator and a number: "match/3", or "M:3" in the simulator.
_SLICE = re.compile(r"(.+)[/:]\d+")


def view_hosts(
    reader: RunReader, number: int, tick: Tick, measured: Tick | None
) -> dict[str, Any] | None:
    """Return hosts with their slices, the last moves and the delay; None if there are no hosts."""
    hosts = measured.snapshot.hosts if measured is not None and measured.snapshot else {}
    if not hosts:
        return None
    # sorted, so that an operator keeps its colour when slices move
    operators = sorted({_operator(name) for host in hosts.values() for name in host.slices})
    return {
        "operators": operators,
        "hosts": [_view_host(host, operators) for host in list(hosts.values())[:MAX_HOSTS]],
        "hosts_left_out": max(0, len(hosts) - MAX_HOSTS),
        "slices": sum(len(host.slices) for host in hosts.values()),
        "moves": _find_moves(reader, number),
        "delay_s": _delay(tick),
    }


def _view_host(host: HostSnapshot, operators: list[str]) -> dict[str, Any]:
    pieces = list(host.slices.items())
    return {
        "name": host.name,
        "load": host.load,
        "memory": sum(piece.memory for _, piece in pieces),
        "count": len(pieces),
        # the place of the operator in the list, the name and the load of each slice
        "slices": [
            [operators.index(_operator(name)), name, round(piece.cpu, 4)]
            for name, piece in pieces[:MAX_SLICES]
        ],
    }


def _operator(name: str) -> str:
    """Return the operator of a slice.

    >>> _operator("match/3"), _operator("M:16"), _operator("odd")
    ('match', 'M', 'odd')
    """
    match = _SLICE.fullmatch(name)
    return match.group(1) if match else name


def _find_moves(reader: RunReader, number: int) -> dict[str, Any] | None:
    """Return the moves of this tick, or the last ones before it; None if there were none."""
    for data in _changes_before(reader, number):
        decision = data.get("decision")
        moves = decision.get("moves") if isinstance(decision, Mapping) else None
        if isinstance(moves, list) and moves:
            return {
                "at": data.get("at"),
                "is_applied": data.get("applied") is True,
                "count": len(moves),
                "list": [_view_move(move) for move in moves[:MAX_MOVES]],
            }
    return None


def _changes_before(reader: RunReader, number: int) -> Iterator[Mapping[str, Any]]:
    """Yield this tick and the changes before it, the newest first."""
    if number >= len(reader.columns):  # not read yet, nor are the changes before it
        yield from reversed(reader.index.read(max(0, number + 1 - _MAX_TICKS), number + 1))
        return
    yield reader.index.data(number)
    earlier = (change for change, _ in reversed(reader.columns.changes) if change < number)
    yield from map(reader.index.data, islice(earlier, _MAX_CHANGES))


def _view_move(move: Any) -> dict[str, str]:
    known = move if isinstance(move, Mapping) else {}
    return {key: str(known.get(key, "?")) for key in ("slice", "from", "to")}


def _delay(tick: Tick) -> dict[str, float] | None:
    """Return the delay of what was delivered since the tick before; None if nothing was."""
    delays = Histogram()
    for histogram in tick.status.latency.values():
        delays.merge(histogram)
    if not delays.count:
        return None
    return {"p50": delays.percentile(50), "p95": delays.percentile(95), "max": delays.max}
