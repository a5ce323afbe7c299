"""The cost of a decision as pipelines grow: 10, 100, 1,000 operators, every policy.

Prints milliseconds for orientation and ratios to compare: growth from 100 to 1,000
operators, where about 10 is linear. The pipelines are layered random graphs with a few
busy operators; policies with a window get a full one.

    python benchmarks/decide.py
"""

import gc
import random
import sys
import time

from penstock.control.registry import builtin_policies
from penstock.core.frozen_dict import FrozenDict
from penstock.core.policy import Policy
from penstock.core.snapshot import HostSnapshot, OperatorSnapshot, SliceSnapshot, Snapshot
from sides.timing import fastest_s

SIZES = (10, 100, 1000)
#: The aim: at most this from 100 to 1,000 operators.
LIMIT = 20.0
TICKS = 21


def pipeline(size: int, at: float) -> Snapshot:
    """A layered graph: each operator reads one to three of those just before it."""
    rng = random.Random(size)
    ops, names = {}, [f"o{i}" for i in range(size)]
    for i, name in enumerate(names):
        upstream = tuple(sorted(rng.sample(names[max(0, i - 8) : i], k=min(i, rng.randint(1, 3)))))
        rate, busy = rng.uniform(50, 150), rng.uniform(0.2, 1.0)
        ops[name] = OperatorSnapshot(
            name=name,
            upstream=upstream,
            parallelism=rng.randint(1, 8),
            max_parallelism=64,
            input_rate=rate,
            output_rate=rate,
            busy=busy,
            idle=1 - busy,
            backpressured=rng.choice([0.0, 0.0, 0.3]),
            cpu=busy,
            queue=rng.uniform(0, 300),
            queue_growth=rng.uniform(-500, 1500),
            input_buffer=rng.random(),
            service_time_s=rng.uniform(0.001, 0.02),
            service_scv=1.0,
            arrival_scv=1.0,
        )
    return Snapshot(at=at, offered=FrozenDict(o0=100.0), operators=FrozenDict(ops))


def cluster(size: int, at: float) -> Snapshot:
    """That many slices, ten on a host, the hosts too busy."""
    rng = random.Random(size)
    hosts = {}
    for h in range(size // 10):
        slices = {
            f"s{h}:{i}": SliceSnapshot(cpu=rng.uniform(0.05, 0.12), memory=rng.uniform(1, 20))
            for i in range(10)
        }
        hosts[f"h{h}"] = HostSnapshot(name=f"h{h}", slices=FrozenDict(slices))
    return Snapshot(at=at, hosts=FrozenDict(hosts))


def cost(policy: Policy, size: int) -> float:
    """Seconds of processor time of one decision; beside other work, the clock counts theirs."""
    make = cluster if policy.reads == "hosts" else pipeline
    history = [make(size, 15.0 * tick) for tick in range(TICKS)]
    params = policy.params()
    gc.collect()
    gc.freeze()  # keep the collector away from the data of the benchmark
    return fastest_s(
        lambda: policy.decide(history, [], params), min_s=0.4, min_calls=5, clock=time.process_time
    )


def main() -> int:
    """Print the table; exit code 1 if a policy grows faster than the aim."""
    print(f"{'policy':<14} {'10 ops ms':>10} {'100 ms':>10} {'1,000 ms':>10}   100 -> 1,000")
    worst = 0.0
    for policy in builtin_policies().values():
        costs = [cost(policy, size) for size in SIZES]
        growth = costs[2] / costs[1]
        worst = max(worst, growth)
        shown = " ".join(f"{c * 1000:>10.3f}" for c in costs)
        print(f"{policy.name:<14} {shown}   {growth:>8.1f} x")
    print(f"\nlargest growth {worst:.1f} x; the aim is at most {LIMIT:.0f} x (linear is 10 x)")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
