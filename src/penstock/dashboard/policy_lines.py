"""What other policies would have wanted on the recorded snapshots of a run, as lines."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.control.loop import Tick
from penstock.control.registry import policies
from penstock.dashboard.run_reader import RunReader
from penstock.errors import InputError, PenstockError, nearest
from penstock.runs.decimation import decimate, decimate_times, to_json_numbers
from penstock.runs.journal_header import decider_of
from penstock.runs.replay import replay, wanted

#: Ticks that are replayed, the newest; a policy takes up to some milliseconds for each.
MAX_REPLAYED = 20_000


def replay_policy(reader: RunReader, policy: str, points: int = 1000) -> dict[str, Any]:
    """Return the replicas of all operators that a known policy wants at each snapshot.

    Only names of known policies are accepted: a path would execute a file.
    """
    if policy not in policies():
        raise InputError("policy", f"unknown policy {policy!r}", nearest(policy, policies()))
    reader.update()
    with reader.open():
        decider = decider_of(reader.index.header, policy)
        first = max(0, len(reader.index) - MAX_REPLAYED)
        ticks = [*_ticks(reader, first)]
    times, totals = [], []
    try:
        for answer in replay(ticks, decider):
            kept = {name: target.current for name, target in answer.recorded.targets.items()}
            times.append(answer.at)
            totals.append(sum({**kept, **wanted(answer.other)}.values()))
    except PenstockError as error:
        raise InputError("policy", f"{policy} cannot answer here: {error}") from None
    points = max(20, min(points, 4000)) // 2 * 2
    return {
        "policy": policy,
        "times": decimate_times(np.array(times), points).tolist(),
        "replicas": to_json_numbers(decimate(np.array(totals, dtype=float), points)),
        "from_s": times[0] if times else None,
        "is_cut": first > 0,
    }


def _ticks(reader: RunReader, first: int) -> Iterator[Tick]:
    for number in range(first, len(reader.index)):
        tick = reader.index.tick(number)
        if tick is not None:
            yield tick
