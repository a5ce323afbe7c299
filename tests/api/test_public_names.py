"""The public API: every name can be imported, and type checkers see the same names."""

import ast
import subprocess
import sys
from pathlib import Path

import penstock


def _stub_names() -> set[str]:
    stub = Path(penstock.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    names = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_every_public_name_can_be_imported() -> None:
    assert {name for name in penstock.__all__ if getattr(penstock, name, None) is None} == set()


def test_type_checkers_see_the_same_names() -> None:
    assert _stub_names() == set(penstock.__all__)


def test_what_is_public_has_a_docstring() -> None:
    plain = {"Applied", "History", "__version__"}  # aliases of types, and a string
    names = set(penstock.__all__) - plain
    assert {name for name in names if not getattr(penstock, name).__doc__} == set()


def test_importing_the_package_loads_neither_spark_nor_arrow() -> None:
    code = "import sys, penstock; print(sorted({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
