"""`penstock check`: the graph of a pipeline, and the verdict on each change before a restart."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.runs.build_args import build_pipeline
from penstock.runs.pipeline_changes import check_description

FILE = """
import pyarrow as pa
from penstock import Pipeline

pipeline = Pipeline("shop", objective_s=2)
pipeline.topic("sales", "id long, shop string, price double{note}", external=True)
pipeline.topic("priced", "shop string, price double")
pipeline.topic("totals", "shop string, total double")

@pipeline.batches("sales", "priced", max_replicas=3)
def price(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["shop", "price"])

@pipeline.sliced("priced", "totals", key="shop", state="{state}", slices=8)
def {total}(batch, state):
    return None
"""


def write(path: Path, note: str = "", state: str = "total double", total: str = "total") -> str:
    path.write_text(FILE.format(note=note, state=state, total=total))
    return str(path)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The directory of a run that was stopped."""
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "run.toml").write_text("version = 1\n[spec]\n")
    check_description(build_pipeline(write(tmp_path / "old.py"), {}).pipeline, directory)
    return directory


def test_a_pipeline_in_order_shows_its_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", write(tmp_path / "shop.py")]) == 0
    text = capsys.readouterr().out
    assert "shop: valid, latency below 2 s" in text
    assert "  price: batch, sales -> priced, 1 to 3 replicas" in text
    assert "  total: sliced, priced -> totals, 8 slices, 1 to 8 replicas" in text
    assert "  sales: id long, shop string, price double; from another process" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_mistake_is_told_as_before_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.py"
    path.write_text(
        FILE.format(note="", state="total double", total="total").replace(
            '("sales", "priced"', '("sale", "priced"'
        )
    )
    assert main(["check", str(path)]) == 2
    assert "there is no topic 'sale'" in capsys.readouterr().err


def test_nothing_changed(tmp_path: Path, stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", write(tmp_path / "new.py"), "--against", str(stopped)]) == 0
    assert f"{stopped} can resume: nothing changed" in capsys.readouterr().out


def test_a_finished_run_is_not_continued(
    tmp_path: Path, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(write(tmp_path / "new.py"))
    (stopped / "result.json").write_text('{"ended": "finished"}')
    note = f"{stopped} has finished: to run the file, choose another --out"
    assert main(["check", str(file), "--against", str(stopped)]) == 0
    assert note not in capsys.readouterr().out, "rows come from another process"
    produced = file.read_text().replace(", external=True", "")
    produced += "\n@pipeline.produces('sales')\ndef shop(first, due):\n    return None\n"
    file.write_text(produced)
    main(["check", str(file), "--against", str(stopped)])
    assert note in capsys.readouterr().out


def test_a_new_column_is_compatible(
    tmp_path: Path, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (stopped / "pipeline.json").read_bytes()
    path = write(tmp_path / "new.py", note=", note string")
    assert main(["check", path, "--against", str(stopped)]) == 0
    text = capsys.readouterr().out
    assert "can resume with 1 change\n" in text
    assert "compatible: topic 'sales' has new columns: note" in text
    assert (stopped / "pipeline.json").read_bytes() == before


def test_other_state_is_refused_with_what_to_do(
    tmp_path: Path, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "new.py", state="total double, n long")
    assert main(["check", path, "--against", str(stopped), "--json"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert not data["works"]
    (change,) = [each for each in data["changes"] if each["verdict"] == "refused"]
    assert "columns of its state" in change["what"] and "another name" in change["hint"]


def test_a_removal_needs_a_word(
    tmp_path: Path, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "new.py", total="summed")
    assert main(["check", path, "--against", str(stopped)]) == 2
    text = capsys.readouterr().out
    assert "cannot resume: refuses 1 of 2 changes" in text
    assert "needs a declaration: operator 'total' was removed (0 rows wait for it)" in text
    assert "was='total'" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80 + len(str(stopped))
    command = ["check", path, "--against", str(stopped), "--allow-removal", "total"]
    assert main(command) == 0
    assert "allowed: operator 'total' was removed" in capsys.readouterr().out


def test_what_is_no_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "new.py")
    for place, problem in ((tmp_path, "is not a run"), (tmp_path / "x", "no such directory")):
        assert main(["check", path, "--against", str(place)]) == 2
        assert problem in capsys.readouterr().err


def test_no_spark_is_loaded(tmp_path: Path, stopped: Path) -> None:
    code = (
        "import sys; from penstock.cli.main import main\n"
        "main(sys.argv[1:])\n"
        "assert not [name for name in sys.modules if name.startswith(('pyspark', 'py4j'))]"
    )
    command = ["check", write(tmp_path / "new.py"), "--against", str(stopped)]
    subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{}"])
def test_a_damaged_description_is_no_traceback(
    tmp_path: Path, stopped: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (stopped / "pipeline.json").write_bytes(content)
    assert main(["check", write(tmp_path / "new.py"), "--against", str(stopped)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
