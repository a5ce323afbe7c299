"""The main job, for now on the simulator: a wave of load, a policy that follows it, and why.

make demo
"""

import sys
import tempfile
from pathlib import Path

from penstock.cli.main import main


def title(text: str) -> None:
    """Head line of a part."""
    print(f"\n{text}\n{'=' * len(text)}\n", flush=True)


def demo() -> int:
    """Simulate two policies on the same load, then tell why one of them acted."""
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        common = ["simulate", "--query", "q1", "--workload", "cosine", "--engine", "spark"]
        common += ["--workload-param", "noise=20000", "--objective", "10"]
        title("140 minutes of a wave of load on simulated Spark, replicas decided by DS2")
        if code := main([*common, "--policy", "ds2", "--out", run]):
            return code
        title("The same load with the fixed number of replicas that its peak needs")
        if code := main([*common, "--policy", "static-peak", "--no-out"]):
            return code
        title("Why did DS2 do what it did in minute 40?")
        return main(["explain", run, "--at", "2400"])


if __name__ == "__main__":
    sys.exit(demo())
