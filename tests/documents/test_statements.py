"""What the documents say of the code is true."""

import re
from pathlib import Path

import pytest
from tests.contracts.policy_checks import CHECKS
from tests.documents.pages import ROOT

from penstock.cli.commands.reproduce import BACKENDS
from penstock.control.policy_file import load_policy_file
from penstock.lab.papers.experiments import PAPERS, load_experiments

pytestmark = pytest.mark.slow


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
    pages = (ROOT / "docs").glob("reproduction*.md")
    text = "\n".join(page.read_text() for page in pages)
    for paper in (*PAPERS, *BACKENDS):
        for claim in load_experiments(paper, backends=BACKENDS).claims:
            assert f"| {claim.id} |" in text, f"{claim.id}: run make reproduce"
