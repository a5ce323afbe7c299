"""Every package that the source imports is declared, and an optional one in its extra."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.extras import OPTIONAL
from penstock.runs.package_versions import parse_requirement

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Imported names that differ from the name of the package, and what PySpark brings along.
PACKAGES = {"google": "protobuf", "py4j": "pyspark"}
REQUIRED = {parse_requirement(text).name for text in PROJECT["dependencies"]}
#: Folders that an extra is for; others import an optional package with `import_optional`.
FOLDERS = {"nexmark": "nexmark", "pubsub": "pubsub", "topics/kafka": "kafka"}


def imported_packages(tree: ast.AST) -> Iterator[str]:
    """The packages that a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


#: Every imported package that is neither Python's nor ours, with the path of the module.
FOREIGN = {
    (name, path.relative_to(SOURCE).as_posix())
    for path in SOURCE.rglob("*.py")
    for name in imported_packages(ast.parse(path.read_text(encoding="utf-8")))
    if name not in sys.stdlib_module_names and name not in ("penstock", "")
}


def test_every_import_is_a_dependency_or_of_an_extra() -> None:
    assert {
        (name, path)
        for name, path in FOREIGN
        if PACKAGES.get(name, name) not in REQUIRED and name not in OPTIONAL
    } == set()


def test_only_the_folder_of_an_extra_imports_its_packages_directly() -> None:
    """Elsewhere `import_optional` says which extra is missing."""
    misplaced = set()
    for name, path in FOREIGN:
        extras = {extra for folder, extra in FOLDERS.items() if path.startswith(f"{folder}/")}
        if name in OPTIONAL and not extras & set(OPTIONAL[name][1:]):
            misplaced.add((name, path))
    assert misplaced == set()


@pytest.mark.parametrize("name", ["numpy", "pyarrow", "pyspark", "tomlkit"])
def test_required_packages_are_imported(name: str) -> None:
    assert name in {imported for imported, _ in FOREIGN}
