"""Commands of all pages that need neither Spark nor a server run as they stand."""

import json
import shlex
from pathlib import Path

import pytest
from tests.documents.pages import POLICIES, ROOT, blocks_of, guides, shell_commands

from penstock.cli.main import main

pytestmark = pytest.mark.slow

#: The verbs that need no Spark and no server; the others only parse, outside of `PLAYED`.
VERBS = ("decide", "policies", "simulate", "workload")
#: What `hosts.jsonl` of a page stands for: one snapshot with hosts.
HOSTS = {
    "at": 30,
    "operators": {"match": {"upstream": [], "parallelism": 2}},
    "hosts": {
        "a": {"slices": {f"match/{number}": {"cpu": 0.2, "memory": 1} for number in range(4)}},
        "b": {"slices": {f"match/{number}": {"cpu": 0.02, "memory": 1} for number in range(4, 8)}},
    },
}


def simple_commands(page: str) -> list[str]:
    """The commands of a page's `sh` blocks with one of these verbs."""
    commands = [words for block in blocks_of(page, "sh") for words in shell_commands(block.text)]
    return [shlex.join(words) for words in commands if words[0] == "penstock" if words[1] in VERBS]


def shown_commands() -> list[str]:
    """All of them, of pages that people write and of the reference of policies."""
    return [command for page in [*guides(), POLICIES] for command in simple_commands(page)]


@pytest.mark.parametrize("command", shown_commands())
def test_the_command_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.jsonl").write_text(json.dumps(HOSTS) + "\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err


def test_each_policy_has_a_command_that_runs() -> None:
    assert len(simple_commands(POLICIES)) == 15
