"""The command itself."""

import pytest

from penstock.cli.main import build_parser, main


@pytest.mark.parametrize("word", ["charts", "options", "simulat", ""])
def test_what_is_no_command_is_answered_with_all_commands(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([word])
    assert stopped.value.code == 2
    listed = capsys.readouterr().err
    assert all(f"'{name}'" in listed for name in ("decide", "explain", "replay", "simulate"))


def test_a_command_that_is_named_is_loaded_alone() -> None:
    text = build_parser("simulate").format_help()
    assert "run a pipeline under a load" in text and "list all policies" not in text
