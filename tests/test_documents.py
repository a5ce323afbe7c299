"""What the documents show is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contracts.policy_checks import CHECKS

from penstock.control.policy_file import load_policy_file
from penstock.control.registry import builtin_policies
from penstock.lab.papers.experiments import PAPERS, load_experiments

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def console_examples() -> list[tuple[str, str]]:
    """Every `$ command` of the README with the output shown under it."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    examples = []
    for block in blocks:
        for part in block.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            examples.append((command, output))
    return examples


@pytest.mark.parametrize(("command", "output"), console_examples())
def test_readme_commands_print_what_the_readme_shows(command: str, output: str) -> None:
    here = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": here + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout + done.stderr).strip() == output.strip()


def test_readme_names_every_policy() -> None:
    text = (ROOT / "README.md").read_text()
    assert all(f"`{name}`" in text for name in builtin_policies())


def test_the_policy_of_the_contributing_guide_passes_the_contract(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    path = tmp_path / "doubling.py"
    path.write_text(found[1])
    policy = load_policy_file(path)
    for check in CHECKS.values():
        check(policy)


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("## The path of a decision")[1]
    for name in re.findall(
        r"`((?:core|control|cli|engines|lab|pipelines|topics|workloads|runs|twin|state)/[a-z_/]+\.py)`",
        table,
    ):
        assert (ROOT / "src/penstock" / name).is_file(), name


def test_the_changelog_and_the_package_agree_on_the_version() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
    assert f'__version__ = "{version[1]}"' in (ROOT / "src/penstock/__init__.py").read_text()


def test_every_claim_has_its_verdict_in_the_reproduction() -> None:
    text = (ROOT / "docs" / "reproduction.md").read_text()
    for paper in PAPERS:
        for claim in load_experiments(paper).claims:
            assert f"| {claim.id} |" in text, f"{claim.id}: run make reproduce"
