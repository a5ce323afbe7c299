"""The pages that are made from the code are fresh, complete and true."""

import pytest
from scripts.make_docs import PAGES
from scripts.reference.policies_page import policy_reasons
from tests.documents.pages import blocks_of, headings, read_page

import penstock
from penstock.control.registry import builtin_policies
from penstock.core.guards import Guards
from penstock.workloads.registry import PATTERNS


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_fresh(page: str) -> None:
    assert read_page(page) == PAGES[page](), "run make docs"


def test_the_api_page_has_every_public_name() -> None:
    anchors = set(headings(read_page("docs/api.md")))
    names = {name.lower() for name in penstock.__all__}
    assert {name for name in names if not {name, f"class-{name}"} & anchors} == set()


def test_every_field_and_option_is_explained() -> None:
    rows = [line for line in read_page("docs/api.md").splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_policy_guard_and_workload_is_listed() -> None:
    text = read_page("docs/policies.md")
    anchors = headings(text)
    assert all(name in anchors for name in builtin_policies())
    names = [*(guard.name for guard in Guards.describe()), *PATTERNS]
    assert [name for name in names if f"| `{name}` |" not in text] == []


def test_every_policy_has_a_command() -> None:
    commands = "".join(block.text for block in blocks_of("docs/policies.md", "sh"))
    assert [name for name in builtin_policies() if f"--policy {name} " not in commands] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, p in builtin_policies().items() if p.reads != "hosts"])
def test_a_policy_gives_no_other_reason(name: str) -> None:
    run = penstock.simulate("q1", policy=name, minutes=40)
    decisions = [tick.decision for tick in run.journal.ticks if tick.decision is not None]
    given = {target.proposal_reason for each in decisions for target in each.targets.values()}
    assert given and given <= set(policy_reasons(builtin_policies()[name]))
