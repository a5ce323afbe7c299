"""`penstock decentralized check`: verdict, trace, JSON, exit codes."""

import json
from pathlib import Path

import pytest

from penstock.cli.commands import decentralized
from penstock.cli.main import main
from penstock.decentralized.checker.suite import standard_suite

SMALL = ["decentralized", "check", "--operators", "2"]


def test_the_invariants_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    text = capsys.readouterr().out
    assert "holds: each operator has its keeper" in text
    assert "(all states)" in text


def test_a_bug_is_shown_as_a_message_sequence_chart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--bug", "one-branch-ack"]) == 1
    text = capsys.readouterr().out
    assert "VIOLATED: every action ends" in text
    chart = text.partition("shortest trace, 2 steps:\n")[2].partition("\n\n")[0]
    assert chart.splitlines() == [
        "     A1    B1    B2",
        "  1  |     *     :      B1 decides to duplicate itself into B2",
        "  2  <-----o     :      duplication {B2}",
    ]


def test_json_has_the_figures_and_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--bug", "no-acks", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["bug"] == "no-acks"
    assert data["violation"]["invariant"] == "no_message_lost"
    assert len(data["violation"]["trace"]) == data["depth"]


def test_a_limited_search_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--max-states", "10"]) == 0
    assert "no violation in the first" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--bug", "no-fif"], "did you mean 'no-fifo'?"),
        (["--instances", "1,x"], "--instances: must be whole numbers with commas, got '1,x'"),
        (["--instances", "1,1,1"], "--instances: gives 3 operators, --operators is 2"),
        (["--max-states", "0"], "--max-states: must be at least 1, got 0"),
        (["--markdown", "page.md"], "--markdown: needs --all"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *options]) == 2
    assert problem in capsys.readouterr().err


def test_the_suite_writes_its_tables_into_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [check for check in standard_suite() if check.bug in ("no-acks", "no-keeper")]
    monkeypatch.setattr(decentralized, "standard_suite", lambda: few)
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- penstock decentralized check --all -->\nold\n<!-- end -->\nafter\n"
    )
    assert main(["decentralized", "check", "--all", "--markdown", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "| no-acks |" in text
    assert "old" not in text
    assert "no-keeper" in capsys.readouterr().out
