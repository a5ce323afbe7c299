"""Run benchmarks and keep what they print: python scripts/bench.py docs/benchmarks.md [NAME ...]

With names only those are run, and the sections of the others stay as they are.
"""

import ast
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HEAD = """# Benchmarks

Made by `make bench`. Figures are ratios measured side by side in one run: a shared machine is
noisy, and a ratio suffers less from that than seconds do.
"""


def main(target: Path, names: Sequence[str]) -> int:
    """Write one section a benchmark; the exit code is that of the worst."""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    sections, worst = [f"{HEAD}Last run: {machine}.\n"], 0
    kept = _sections(target) if names else {}
    for script in sorted(Path("benchmarks").glob("*.py")):
        if names and script.stem not in names:
            sections += [kept[str(script)]] if str(script) in kept else []
            continue
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


def _sections(target: Path) -> dict[str, str]:
    """The sections that are there, by the script that made each."""
    _, *parts = target.read_text(encoding="utf-8").split("\n## `")
    return {part.partition("`")[0]: f"## `{part.rstrip()}\n" for part in parts}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
