"""The process of a node is small: it imports nothing that it does not need."""

import subprocess
import sys

HEAVY = ("numpy", "pandas", "pyarrow", "pyspark", "matplotlib")
PROGRAM = f"""
import sys
import penstock.decentralized.processes.node_process
print([name for name in {HEAVY!r} if name in sys.modules])
"""


def test_a_node_imports_no_heavy_package() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
