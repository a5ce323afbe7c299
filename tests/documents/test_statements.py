"""What the documents say of the code is true."""

import re
from pathlib import Path

import pytest
from tests.contracts.policy_checks import CHECKS
from tests.documents.pages import ROOT, blocks_of

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


def missing_files(text: str) -> list[str]:
    """The files that a text names and that are not in the repository.

    A path is below the package, below the root, or the end of a path of the package.
    """
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.*")}
    names = re.findall(r"`([\w./-]+\.(?:py|pyi|html)|[\w-]+/[\w./-]+\.(?:toml|json))`", text)
    return [
        name
        for name in names
        if not (ROOT / name).is_file() and not any(file.endswith(f"/{name}") for file in files)
    ]


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    tables = text.split("## The path of a decision")[1]
    assert missing_files(tables) == []
    assert missing_files("`io/sink.py`, `cluster/nothing.py`, `core/sink.py`") == [
        "cluster/nothing.py",
        "core/sink.py",
    ]


def test_the_first_pipeline_of_the_readme_is_the_example() -> None:
    text = (ROOT / "examples" / "orders.py").read_text()
    assert text in [block.text for block in blocks_of("README.md", "python")]


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
