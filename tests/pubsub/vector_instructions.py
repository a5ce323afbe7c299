"""Whether compiled kernels use vector instructions."""

import platform
from pathlib import Path
from typing import Any

import pytest


def _read_cpu_flags() -> set[str]:
    path = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not path.exists():
        return set()
    lines = [line for line in path.read_text().splitlines() if line.startswith("flags")]
    return set(lines[0].split()) if lines else set()


needs_wide_vectors = pytest.mark.skipif(
    not {"avx2", "fma"} <= _read_cpu_flags(), reason="this CPU has no AVX2 and FMA"
)


def find_wide_multiply_adds(kernel: Any) -> list[str]:
    """The multiply-adds of vectors of single precision in a kernel that was called once."""
    (assembly,) = kernel.inspect_asm().values()
    fused = [line for line in assembly.splitlines() if "vfmadd" in line]
    return [line for line in fused if "ps\t" in line and ("%ymm" in line or "%zmm" in line)]
