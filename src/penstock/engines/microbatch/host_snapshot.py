"""Builds the snapshots of hosts from the slices of operators. Pure.

The processor time of a slice is that of its calls, times the overhead of its operator's batches: so
a host that every batch waits for, and whose slices never wait for rows, shows about 1.
"""

from collections.abc import Mapping

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import HostSnapshot, OperatorSnapshot, SliceSnapshot
from penstock.engines.microbatch.host_table import HostTable

MEGABYTE = 1e6


def build_hosts(
    table: HostTable,
    operators: Mapping[str, OperatorSnapshot],
    state_bytes: Mapping[str, Mapping[int, int]],
) -> Mapping[str, HostSnapshot]:
    """Return each host with its slices; memory is megabytes of state, network megabytes/s."""
    return FrozenDict(
        {
            host: HostSnapshot(
                name=host,
                slices=FrozenDict(
                    {
                        name: _build_slice(name, operators, state_bytes)
                        for name in table.slices_of(host)
                    }
                ),
            )
            for host in table.hosts
        }
    )


def _build_slice(
    name: str,
    operators: Mapping[str, OperatorSnapshot],
    state_bytes: Mapping[str, Mapping[int, int]],
) -> SliceSnapshot:
    operator, _, text = name.rpartition("/")
    number = int(text)
    extra = operators[operator].extra if operator in operators else {}

    def read(key: str) -> float:
        values = extra.get(key)
        known = isinstance(values, tuple) and number < len(values)
        return float(values[number]) if known and isinstance(values, tuple) else 0.0

    overhead = extra.get("overhead")
    factor = float(overhead) if isinstance(overhead, int | float) else 1.0
    return SliceSnapshot(
        cpu=round(read("slice_cpu") * factor, 6),
        memory=state_bytes.get(operator, {}).get(number, 0) / MEGABYTE,
        network=round((read("slice_bytes_in") + read("slice_bytes_out")) / MEGABYTE, 6),
    )
