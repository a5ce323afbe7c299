"""The notebook of the examples runs from top to bottom, as a reader would run it."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from tests.documents.pages import ROOT

NOTEBOOK = ROOT / "examples" / "elastic_orders.ipynb"
#: A last cell that only the test adds: what the cells above left behind.
REPORT = """
import json
print(json.dumps({
    "ended": run.result.spark.ended,
    "lost": run.result.spark.records.lost,
    "offered": run.result.spark.records.offered,
    "processed": run.result.spark.records.operators["locate"].rows_out,
    "most": run.result.scores.operators["locate"].replicas.max,
    "orders": run.rows("totals").drop_columns("_event").to_pylist(),
    "policies": comparison.table["policy"].to_pylist(),
}))
"""


def test_the_notebook_is_committed_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.spark
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(REPORT))
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    nbformat.write(notebook, tmp_path / "executed.ipynb")

    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    declare, attempt, execute, figures, changes, why, picture, compare, pictures, report = cells
    assert declare.outputs == []
    assert "'country': 'FR'" in text_of(attempt)
    assert "<table" in html_of(execute) and "<svg" in html_of(execute)
    assert "orders, latency p95" in text_of(figures)
    assert "rate-above-capacity" in html_of(changes)
    assert "wanted = ceil(" in text_of(why)
    assert all("<svg" in data_of(cell, "image/svg+xml") for cell in (picture, pictures))
    assert "hpa-cpu" in html_of(compare)
    check_run(json.loads(text_of(report)))


def check_run(report: dict[str, Any]) -> None:
    """Functions of the notebook ran in the workers: every order was located and counted once."""
    assert (report["ended"], report["lost"]) == ("finished", 0)
    assert report["processed"] == report["offered"] > 1000
    assert report["most"] >= 2
    totals = {row["country"]: (row["n"], row["sum_amount"]) for row in report["orders"]}
    customers = [number * 7919 % 1000 for number in range(report["offered"])]
    for place, country in enumerate(("DE", "FR", "NL", "PL")):
        mine = [number for number, customer in enumerate(customers) if customer % 4 == place]
        assert totals[country] == (len(mine), sum(number % 90 + 10 for number in mine))
    assert report["policies"] == ["ds2", "hpa-cpu", "static-peak"]


def text_of(cell: Any) -> str:
    printed = [output.text for output in cell.outputs if output.output_type == "stream"]
    return "".join([*printed, data_of(cell, "text/plain")])


def html_of(cell: Any) -> str:
    return data_of(cell, "text/html")


def data_of(cell: Any, kind: str) -> str:
    """Everything of a kind that a cell shows."""
    shown = (output for output in cell.outputs if "data" in output)
    return "".join("".join(output.data.get(kind, "")) for output in shown)
