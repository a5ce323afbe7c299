"""A kind is one module: nothing else names it, and another one is added by registering it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.kinds.row_kind import ROW_KIND

import penstock
from penstock.errors import InputError
from penstock.pipelines.description import describe
from penstock.pipelines.kinds.kind import BUILT_IN, OperatorKind, find_kind, register_kind
from penstock.pipelines.operator import Options
from penstock.pipelines.pipeline import Pipeline

SOURCE = Path(penstock.__file__).parent


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    """Double a number."""
    return {"n": row["n"] * 2}


def pipeline_of_rows(function: Any = doubled, options: Options = Options()) -> Pipeline:  # noqa: B008
    """A pipeline with an operator of a kind that Penstock does not know."""
    register_kind(ROW_KIND)
    pipeline = Pipeline("rows")
    pipeline.topic("in", "n long", external=True)
    pipeline.topic("out", "n long")
    pipeline.of_kind("row", "in", "out", options)(function)
    return pipeline


def test_a_new_kind_is_declared_checked_and_tried() -> None:
    pipeline = pipeline_of_rows()
    assert pipeline.check_scaled().order == ("doubled",)
    assert pipeline.operators["doubled"].try_rows([{"n": 3}, {"n": 4}]) == [{"n": 6}, {"n": 8}]
    assert describe(pipeline)["operators"]["doubled"]["kind"] == "row"


def test_a_new_kind_checks_its_operators() -> None:
    def two(row: Any, other: Any) -> Any:
        return row, other

    with pytest.raises(InputError, match=r"must take \(row\), but takes \(row, other\)"):
        pipeline_of_rows(two).check()
    with pytest.raises(InputError, match="chunk_rows: is no option of kind 'row'"):
        pipeline_of_rows(options=Options(chunk_rows=3)).check()


def test_a_kind_without_arguments_cannot_be_registered() -> None:
    class EmptyKind(OperatorKind):
        pass

    with pytest.raises(TypeError, match=r"abstract method '?arguments"):
        register_kind(EmptyKind(name="empty", options=()))  # type: ignore[abstract]


def test_a_kind_that_nothing_registered_is_refused() -> None:
    pipeline = Pipeline("rows")
    pipeline.topic("in", "n long", external=True)
    pipeline.of_kind("batsh", "in", "out")(doubled)
    with pytest.raises(InputError, match="there is no kind 'batsh'"):
        pipeline.check()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_kind_has_its_name_and_cannot_be_replaced(name: str) -> None:
    assert find_kind(name).name == name
    with pytest.raises(InputError, match=f"there is a kind '{name}' already"):
        register_kind(find_kind(name))


def test_no_other_module_asks_for_the_name_of_a_kind() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if path.parent.name != "kinds"]
    assert len(paths) > 200
    assert [found for path in paths for found in _comparisons(path)] == []


def test_the_search_finds_comparisons(tmp_path: Path) -> None:
    path = tmp_path / "asks.py"
    path.write_text(
        'a = op.kind == "batch"\nb = kind not in ("ingest", "egress")\n'
        'match op.kind:\n    case "native" | "frame":\n        pass\n'
        'c = op.kind == other.kind\nd = word == "batch"\n'
    )
    assert sorted(found.rpartition(":")[2] for found in _comparisons(path)) == ["1", "2", "4"]


def _comparisons(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            is_asking = "kind" in ast.unparse(node) and _names_kind(node)
            yield from [f"{path}:{node.lineno}"] if is_asking else []
        elif isinstance(node, ast.Match) and "kind" in ast.unparse(node.subject):
            patterns = [case.pattern for case in node.cases]
            yield from [f"{path}:{each.lineno}" for each in patterns if _names_kind(each)]


def _names_kind(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Constant) and each.value in BUILT_IN for each in ast.walk(node))


def test_no_kind_imports_pyspark() -> None:
    code = (
        "import sys\nfrom penstock.pipelines.kinds.kind import BUILT_IN, find_kind\n"
        "for name in BUILT_IN:\n    find_kind(name)\nassert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
