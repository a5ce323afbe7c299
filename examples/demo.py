"""The main job, for now on recorded snapshots: the same minute and a half, seen by four policies.

make demo
"""

import sys
from pathlib import Path

from penstock.cli.main import main

RUN = str(Path(__file__).parent / "run.jsonl")


def title(text: str) -> None:
    """Head line of a part."""
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def demo() -> int:
    """Show what policies answer, and the whole story of one answer."""
    for policy in ("ds2", "queueing", "dhalion", "hpa-cpu"):
        title(f"What would {policy} do?")
        if code := main(["decide", "--policy", policy, RUN]):
            return code
    title("Why would ds2 with guards do that?")
    guards = ["--guard", "overprovision=1.2", "--guard", "max_increase=3"]
    return main(["decide", "--policy", "ds2", *guards, "--explain", RUN])


if __name__ == "__main__":
    sys.exit(demo())
