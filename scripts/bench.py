"""Run every benchmark and keep what it prints: python scripts/bench.py docs/benchmarks.md"""

import ast
import os
import platform
import subprocess
import sys
from pathlib import Path

HEAD = """# Benchmarks

Made by `make bench`. Figures are ratios measured side by side in one run: a shared machine is
noisy, and a ratio suffers less from that than seconds do.
"""


def main(target: Path) -> int:
    """Write one section a benchmark; the exit code is that of the worst."""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    sections, worst = [f"{HEAD}This run: {machine}.\n"], 0
    for script in sorted(Path("benchmarks").glob("*.py")):
        print(f"running {script}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, script], stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, flush=True)
        worst = max(worst, done.returncode)
        about = ast.get_docstring(ast.parse(script.read_text())) or ""
        text = about.rpartition("\n\n")[0]
        printed = done.stdout.strip()
        table = printed if printed.startswith("|") else f"```text\n{printed}\n```"
        sections.append(f"## `{script}`\n\n{text}\n\n{table}\n")
    target.write_text("\n".join(sections), encoding="utf-8")
    return worst


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
