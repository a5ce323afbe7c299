"""`penstock completion`: what a real bash offers after a part of a command."""

import shlex
import subprocess
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.control.registry import builtin_policies

#: Calls what bash calls for the TAB key, as it is registered for `penstock`.
TAB = """
source "$1"; shift
registered=$(complete -p penstock)
[[ $registered =~ -F\\ ([^ ]+) ]] || exit 9
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"${BASH_REMATCH[1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def bash_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "completion.bash"
    path.write_text(script("bash", capsys))
    return path


def offered(bash_script: Path, line: str) -> set[str]:
    """What bash offers at the end of a line; a line that ends in a space begins a new word."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    done = subprocess.run(
        ["bash", "--norc", "-c", TAB, "bash", str(bash_script), *words],
        cwd=bash_script.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(filter(None, done.stdout.splitlines()))


def test_bash_accepts_the_script(bash_script: Path) -> None:
    subprocess.run(["bash", "-n", str(bash_script)], check=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("penstock sim", {"simulate"}),
        ("penstock st", {"state", "status", "stop"}),
        ("penstock topics t", {"tail"}),
        ("penstock simulate --pol", {"--policy"}),
        ("penstock simulate --policy dh", {"dhalion"}),
        ("penstock simulate --engine stre", {"streamhub"}),
        ("penstock simulate --query images-s", {"images-slow"}),
        ("penstock nexmark verify --query q2", {"q2", "q20", "q21", "q22"}),
        ("penstock run imag", {"images"}),
        ("penstock run mi", {"mine.py"}),
        ("penstock run images --workload puls", {"pulsar"}),
        ("penstock status ru", {"runs"}),
        ("penstock completion z", {"zsh"}),
    ],
)
def test_a_word_is_completed(bash_script: Path, line: str, words: set[str]) -> None:
    (bash_script.parent / "mine.py").touch()
    (bash_script.parent / "mine.txt").touch()
    (bash_script.parent / "runs").mkdir()
    assert offered(bash_script, line) == words


def test_every_policy_is_offered(bash_script: Path) -> None:
    assert offered(bash_script, "penstock policies ") == set(builtin_policies())


@pytest.mark.parametrize(("shell", "beginning"), [("zsh", "#compdef penstock"), ("tcsh", "# AUTO")])
def test_other_shells_get_their_own_script(
    shell: str, beginning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    assert text.startswith(beginning)
    assert "images-slow" in text and "dhalion" in text


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["completion", "bahs"])
    assert stopped.value.code == 2
    assert "did you mean 'bash'?" in capsys.readouterr().err
