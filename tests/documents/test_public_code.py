"""Code on pages and in examples uses public names only, with parameters and members that exist."""

import ast
import inspect
import json
import re
from collections.abc import Iterator

import pytest
from tests.documents.pages import ROOT, blocks_of, guides

import penstock
from penstock import pubsub

#: Every package whose `__all__` is public (docs/formats-and-versions.md).
PUBLIC = {"penstock": penstock, "penstock.pubsub": pubsub}
#: What a call of a public name returns, for the members of the variable that holds it.
RETURNS = {"attach": penstock.Attachment, "Client": pubsub.Client, "Pipeline": penstock.Pipeline}


def page_code() -> dict[str, str]:
    """The Python of every page, block by block; doctests are run, not read, elsewhere."""
    return {
        f"{page}:{block.line}": block.text
        for page in [*guides(), "CONTRIBUTING.md"]
        for block in blocks_of(page, "python", "py")
        if not block.text.startswith(">>>")
    }


def example_code() -> dict[str, str]:
    """The examples and the code of the notebook."""
    files = sorted((ROOT / "examples").rglob("*.py"))
    code = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        code[str(path.relative_to(ROOT))] = "\n".join(sources)
    return code


CODE = page_code() | example_code()


def private_names(tree: ast.AST) -> Iterator[str]:
    """What is imported from Penstock, or asked of its package, and is not public."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "penstock":
            known = PUBLIC.get(str(node.module))
            for alias in node.names:
                if known is None or alias.name not in known.__all__:
                    yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "penstock" and alias.name not in PUBLIC:
                    yield alias.name
        elif isinstance(node, ast.Attribute):
            is_ours = ast.unparse(node.value) == "penstock"
            if is_ours and node.attr not in (*penstock.__all__, "pubsub"):
                yield f"penstock.{node.attr}"


def unknown_names(tree: ast.AST) -> Iterator[str]:
    """Parameters of public functions, and members of what they return, that do not exist."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for name, call in ((public_name(call), call) for call in calls):
        if name:
            function = getattr(penstock, name, None) or getattr(pubsub, name)
            known = inspect.signature(function).parameters
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
                given = {keyword.arg for keyword in call.keywords if keyword.arg}
                yield from (f"{name}({word}=)" for word in given - set(known))
    classes = {
        target.id: RETURNS[name]
        for target, value in assignments(tree)
        if isinstance(target, ast.Name) and isinstance(value, ast.Call)
        if (name := public_name(value) or "") in RETURNS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = classes.get(node.value.id)
            if owner is not None and not has_member(owner, node.attr):
                yield f"{owner.__name__}.{node.attr}"


def has_member(owner: type, name: str) -> bool:
    """Whether a class has this member, or sets it on its objects."""
    return hasattr(owner, name) or bool(re.search(rf"self\.{name}\b", inspect.getsource(owner)))


def assignments(tree: ast.AST) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """Every variable that an assignment or a `with` binds, with the expression."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield node.targets[0], node.value
        elif isinstance(node, ast.With):
            yield from ((item.optional_vars, item.context_expr) for item in node.items)


def public_name(call: ast.Call) -> str | None:
    """The public name that is called, as `penstock.run(...)` or `run(...)`."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        is_ours = function.value.id == "penstock" and function.attr in penstock.__all__
        return function.attr if is_ours else None
    name = function.id if isinstance(function, ast.Name) else ""
    return name if name in RETURNS else None


@pytest.mark.parametrize("place", CODE)
def test_code_uses_public_names_only(place: str) -> None:
    tree = ast.parse(CODE[place], place)
    assert sorted(private_names(tree)) == []
    assert sorted(unknown_names(tree)) == []


def test_the_pages_with_code_that_does_not_run_are_read() -> None:
    pages = {place.partition(":")[0] for place in CODE}
    assert {"docs/attach.md", "docs/pubsub.md", "examples/elastic_orders.ipynb"} <= pages


@pytest.mark.parametrize(
    "code",
    [
        "from penstock.core.decision import keep",
        "from penstock import topics",
        "import penstock.runs.result",
        "penstock.core",
        "penstock.attach(spark, freshnes='30 s')",
        "attached = penstock.attach(spark)\nattached.stop_now()",
        "with Client(url) as client:\n    client.publishes({})",
    ],
)
def test_a_wrong_name_is_found(code: str) -> None:
    tree = ast.parse(code)
    assert [*private_names(tree), *unknown_names(tree)] != []
