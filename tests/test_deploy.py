"""The files in deploy/ fit the command and the repository that they are for."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from penstock.cli.main import build_parser

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "penstock@.service"
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text().replace("\\\n", " ")


def unit_value(key: str) -> str:
    (value,) = re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)
    return str(value)


def test_the_unit_runs_a_command_that_there_is() -> None:
    _, *words = shlex.split(unit_value("ExecStart").replace("$PENSTOCK_OPTIONS", "--policy ds2"))
    args = build_parser("run").parse_args(words)
    assert (args.plain, args.policy, args.out) == (True, "ds2", "/var/lib/penstock/%i")
    assert args.out.startswith(f"/var/lib/{unit_value('StateDirectory')}/")


def test_the_unit_knows_the_exit_codes() -> None:
    """Stopped is a success, a mistake of the user is not tried again; see `penstock run --help`."""
    assert unit_value("SuccessExitStatus") == "130 143"
    assert unit_value("RestartPreventExitStatus") == "2"
    assert (unit_value("Restart"), unit_value("KillMode")) == ("on-failure", "mixed")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_can_read_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    # the command itself is not installed here
    unit.write_text(
        re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text(), flags=re.M)
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_container_gets_every_file_that_its_installation_needs() -> None:
    copied = [
        word for line in re.findall(r"^COPY (.*) \S+$", CONTAINER, re.M) for word in line.split()
    ]
    assert all((ROOT / name).exists() for name in copied)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = build["tool"]["hatch"]["build"]["targets"]["wheel"]
    scripts = re.findall(r"\bsh (scripts/\S+)", CONTAINER)
    needed = [*wheel.get("force-include", {}), build["project"]["readme"], "requirements.lock"]
    needed += [*scripts, *wheel["packages"]]
    assert [name for name in needed if not any(name.startswith(each) for each in copied)] == []


def test_the_container_runs_a_command_that_there_is() -> None:
    (words,) = re.findall(r"^CMD \[(.*)\]$", CONTAINER, re.M)
    args = build_parser("run").parse_args(shlex.split(words.replace(",", " ")))
    assert f"penstock status {args.out} " in CONTAINER
