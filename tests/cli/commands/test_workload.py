"""The command `penstock workload`."""

import json

import pytest

from penstock.cli.main import main
from penstock.workloads.registry import PATTERNS

Capture = pytest.CaptureFixture[str]


def test_json_has_one_integer_a_minute(capsys: Capture) -> None:
    assert main(["workload", "cosine", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rates"][:3] == [2227166, 2160889, 2231904]
    assert all(isinstance(rate, int) for rate in shown["rates"])
    assert len(shown["rates"]) == shown["minutes"] == 140
    assert shown["seed"] == 1066
    assert shown["params"] == {
        "mean": 1200000, "div": 1000000, "noise": 100000, "period": 60.0,
    }  # fmt: skip
    assert shown["total_records"] == 60 * sum(shown["rates"])


def test_options_change_the_load(capsys: Capture) -> None:
    argv = ["workload", "random", "--minutes", "2", "--seed", "1073", "--param", "step=250000"]
    assert main([*argv, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rates"] == [1250000, 1250000 + 137713 // 2]
    assert shown["params"]["step"] == 250000


def test_convergence_lasts_90_minutes_unless_told(capsys: Capture) -> None:
    main(["workload", "convergence", "--json"])
    assert (
        json.loads(capsys.readouterr().out)["rates"] == [0] * 10 + [2000000] * 40 + [1000000] * 40
    )


def test_spikes_are_among_the_parameters_when_they_are_on(capsys: Capture) -> None:
    main(["workload", "ramp", "--param", "spike-up=0.5", "--json"])
    assert json.loads(capsys.readouterr().out)["params"]["spike_up"] == 0.5


def test_expressions_are_workloads_too(capsys: Capture) -> None:
    assert main(["workload", "constant(rate=1) for 1 then constant(rate=2) for 2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rates"] == [1, 2, 2]


def test_people_get_a_sparkline_and_figures(capsys: Capture) -> None:
    assert main(["workload", "convergence", "--minutes", "100"]) == 0
    title, _, line, axis, _, *figures = capsys.readouterr().out.splitlines()
    assert title == "convergence, seed 1066"
    assert line[0] == line[-1] == "▁" and "█" in line and len(axis) == len(line)
    assert axis.endswith("100 min")
    assert figures == [
        "min                 0 records/s, minute 0",
        "mean        1,200,000 records/s",
        "max         2,000,000 records/s, minute 10",
        "total   7,200,000,000 records",
        "length            100 minutes",
    ]


def test_a_load_of_nothing_is_shown_too(capsys: Capture) -> None:
    assert main(["workload", "constant", "--param", "rate=0"]) == 0
    assert "▁▁▁" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["workload"], ["workload", "--list"]])
def test_all_workloads_are_listed_with_their_parameters(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 0
    shown = capsys.readouterr().out
    for name, pattern in PATTERNS.items():
        assert f"{name} {pattern.summary}" in " ".join(shown.split())
    assert "div=1000000" in shown and "spike_up=0.05" in shown and "spike_up=0 " in shown


def test_the_list_of_one_workload_as_json(capsys: Capture) -> None:
    assert main(["workload", "--list", "decrease", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["name"] == "decrease" and shown["params"] == {"start": 2500000}


def test_mistakes_go_to_stderr_with_exit_code_2(capsys: Capture) -> None:
    assert main(["workload", "cosin"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "error: workload: unknown workload 'cosin'\nhint: did you mean 'cosine'?\n"
    )


def test_a_picture_that_cannot_be_drawn_stops_before_anything_is_printed(capsys: Capture) -> None:
    assert main(["workload", "cosine", "--plot", "load.bmp"]) == 2
    assert capsys.readouterr().out == ""
