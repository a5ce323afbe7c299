"""What a simulated run costs: seconds of a processor, against real time, and memory.

One 140-minute run of queries 1 and 11 with four policies, without and with its journal; the
whole command beside the bare interpreter; and the peak of memory of a run four times as long.

    python benchmarks/simulate.py
"""

import gc
import subprocess
import sys
import tempfile
import tracemalloc
from itertools import count
from pathlib import Path

from penstock.runs.run_directory import begin_run, finish_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec
from sides.timing import fastest_s, processor_s

MINUTES = 140
QUERIES = ("q1", "q11")
POLICIES = ("ds2", "dhalion", "hpa-varga", "flink")
#: The aim for one run, in seconds beyond the interpreter's start.
LIMIT_S = 0.5
#: Not held to it: a policy remembers nothing, so this one recomputes an hour at every decision.
HEAVY = ("flink",)
#: The aim for four times the length: a longer load and one age a tick may add a little.
MEMORY_LIMIT = 2.0


def plain(spec: SimulationSpec) -> None:
    """One run of which only the figures are kept."""
    prepare_simulation(spec).run()


def kept(spec: SimulationSpec, directory: Path) -> None:
    """One run with its directory."""
    prepared = prepare_simulation(spec)
    with begin_run(directory, spec.to_json(), prepared.header()) as journal:
        result = prepared.run(journal.write)
    finish_run(directory, result)


def runs(root: Path) -> float:
    """Print one line a run; return the seconds of the slowest that is held to the aim."""
    print(f"{'query':<6} {'policy':<10} {'seconds':>8} {'x real time':>12} {'with journal':>13}")
    worst = 0.0
    for query in QUERIES:
        for policy in POLICIES:
            spec = SimulationSpec(query=query, policy=policy, minutes=MINUTES)
            bare_s = fastest_s(lambda spec=spec: plain(spec), min_calls=3, clock=processor_s)
            name = f"{query}-{policy}"
            places = (root / f"{name}-{number}" for number in count())
            kept_s = fastest_s(
                lambda spec=spec, places=places: kept(spec, next(places)),
                min_calls=3,
                clock=processor_s,
            )
            worst = max(worst, 0.0 if policy in HEAVY else bare_s)
            ratio = MINUTES * 60 / bare_s
            times = f"{kept_s / bare_s:.2f} x"
            print(f"{query:<6} {policy:<10} {bare_s:>8.3f} {ratio:>10,.0f} x {times:>13}")
    return worst


def command() -> float:
    """Seconds of the whole command beyond those of an interpreter that does nothing."""

    def seconds(*argv: str) -> float:
        start = [sys.executable, *argv]
        return fastest_s(
            lambda: subprocess.run(start, check=True, capture_output=True),
            min_calls=5,
            clock=processor_s,
        )

    main = "from penstock.cli.main import main; main(['simulate', '--json', '--no-out'])"
    return seconds("-c", main) - seconds("-c", "pass")


def peak_mb(minutes: int) -> float:
    """Peak of memory of one run without journal, beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    plain(SimulationSpec(minutes=minutes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> int:
    """Print everything; exit code 1 if an aim is missed."""
    plain(SimulationSpec(minutes=1))  # what is loaded once counts for the command only
    with tempfile.TemporaryDirectory() as root:
        worst = runs(Path(root))
    others = f"slowest but {' and '.join(HEAVY)}"
    print(f"\n{others}: {worst:.2f} s; the aim is at most {LIMIT_S} s")
    print(f"whole command, q1 with ds2: {command():.2f} s beyond an interpreter that does nothing")
    short, long = peak_mb(MINUTES), peak_mb(4 * MINUTES)
    growth = long / short
    print(
        f"peak of memory {short:.2f} MB for {MINUTES} minutes, {long:.2f} MB for {4 * MINUTES}: "
        f"{growth:.1f} x (aim: at most {MEMORY_LIMIT:.0f} x)"
    )
    return 0 if worst <= LIMIT_S and growth <= MEMORY_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
