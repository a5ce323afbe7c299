"""The command `penstock pubsub`."""

import json
import stat
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.pubsub.spaces.space_key import read_space_key

Capture = pytest.CaptureFixture[str]

SPACE = """\
format = 1
scheme = "aspe"
[attributes.price]
low = 0
high = 500
step = 0.01
[attributes."order.symbol"]
text = true
"""
SMALL = ["--subscriptions", "640", "--publications", "20", "--rounds", "2", "--backend", "numpy"]
SMALL += ["--kernels-only"]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


def test_bench_prints_every_figure_as_json(capsys: Capture) -> None:
    assert main(["pubsub", "bench", "--encrypted", "--json", *SMALL]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["wrong_pairs"] == 0
    assert (figures["paper_operations_per_s"], figures["paper_cores"]) == (42.2e6, 96)
    for name in ("kernel", "operator", "arithmetic_limit"):
        assert figures[f"{name}_operations_per_s"] > 0
        assert figures[f"{name}_operations_per_cpu_s"] > 0
    assert figures["flops_per_operation"] == 128
    assert figures["end_to_end_operations_per_s"] is None


def test_bench_prints_a_table_and_progress_apart_from_it(capsys: Capture) -> None:
    assert main(["pubsub", "bench", *SMALL]) == 0
    shown = capsys.readouterr()
    assert "640 plain subscriptions, 4 attributes" in shown.out
    assert "E-StreamHub, 96 cores" in shown.out
    assert "limit of arithmetic" not in shown.out
    assert "100 %" in shown.err


def test_bench_refuses_impossible_options(capsys: Capture) -> None:
    assert main(["pubsub", "bench", "--match-rate", "2"]) == 2
    assert "--match-rate: must be above 0 and at most 1, got 2.0" in capsys.readouterr().err


def test_keygen_writes_a_key_for_its_owner_only(
    space: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "space.key"
    assert main(["pubsub", "keygen", "--space", str(space), "--out", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {
        "file": str(out),
        "scheme": "aspe",
        "attributes": ["price", "order.symbol"],
    }
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert read_space_key(out).space.paths == ("price", "order.symbol")


def test_keygen_replaces_nothing(space: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "space.key"
    out.write_text("mine")
    assert main(["pubsub", "keygen", "--space", str(space), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert out.read_text() == "mine"


def test_keygen_names_the_mistake_in_a_declaration(
    space: Path, tmp_path: Path, capsys: Capture
) -> None:
    space.write_text(SPACE.replace("0.01", "0.03"))
    assert main(["pubsub", "keygen", "--space", str(space), "--out", str(tmp_path / "k")]) == 2
    assert f"{space}: attributes.price.high: must be low plus" in capsys.readouterr().err
