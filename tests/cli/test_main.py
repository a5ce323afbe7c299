"""The command itself."""

import io
import json
import sys
from pathlib import Path

import pytest

from penstock.cli.main import build_parser, main


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (["zzz"], "known: attach, calibrate, check, completion, dashboard, decentralized, decide,"),
        ([""], "known: attach, calibrate, check, completion, dashboard, decentralized, decide,"),
        (["simluate"], "did you mean 'simulate'?"),
        (["lab", "comprae"], "did you mean 'compare'?"),
        (["decide", "--polcy", "ds2", "-"], "unknown option --polcy: did you mean '--policy'?"),
        (["simulate", "--minuts=3"], "unknown option --minuts: did you mean '--minutes'?"),
        (["reproduce", "thesus"], "did you mean 'thesis'?"),
        (["simulate", "--minutes=--"], "argument --minutes: expected one argument"),
        (["simulate", "q1"], "unexpected argument: q1"),
    ],
)
def test_what_is_not_known_is_answered_with_the_nearest(
    argv: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert answer in capsys.readouterr().err


def test_an_option_may_be_shortened_and_a_value_may_look_like_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["policies", "--js", "--", "static"]) == 0
    assert main(["policies", "--", "--static"]) == 2
    assert "unknown policy '--static'" in capsys.readouterr().err


def test_what_should_never_happen_is_one_line_and_shows_more_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.cli.commands.policies.policies", lambda: 1 / 0)
    assert main(["policies"]) == 70
    told = capsys.readouterr().err
    assert told.startswith("error: unexpected ZeroDivisionError: division by zero\n")
    assert "PENSTOCK_DEBUG=1" in told and "Traceback" not in told
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    assert main(["policies"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_name_that_no_terminal_can_show_is_printed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = "half \ud800"
    operator = {"parallelism": 1, "input_rate": 5.0, "busy": 0.5}
    line = {"at": 0, "offered": {lone: 9.0}, "operators": {lone: operator}}
    (tmp_path / "run.jsonl").write_text(json.dumps(line))
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="utf-8"))
    assert main(["decide", "--policy", "ds2", "--explain", str(tmp_path / "run.jsonl")]) == 0
    assert b"half \\ud800" in shown.getvalue()


def test_a_command_that_is_named_is_loaded_alone() -> None:
    text = build_parser("simulate").format_help()
    assert "run a pipeline under a load" in text and "list all policies" not in text
