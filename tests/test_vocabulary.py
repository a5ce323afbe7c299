"""The vocabulary of the house: unique class names, nouns as module names, one glossary."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
#: Last words of module names that end like a participle or a gerund and are nouns of the field,
#: or the name of a published policy, of a kind of operator or of a kind of engine.
NOUNS = {
    "attached",
    "dealing",
    "decentralized",
    "embedded",
    "hashing",
    "queueing",
    "ranking",
    "scaling",
    "sliced",
    "string",
}
GERUND = re.compile(r"(?<=.)(ing|ed)$")
#: Names of variables, parameters and attributes that do not say what they hold.
VAGUE = {"asked", "found", "one", "said", "told"}
OLD_LIMIT = re.compile(r"_?(MOST|LEAST)_")


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


def module_names() -> list[str]:
    """Modules and packages by their path, without an ending."""
    files = {path.relative_to(SOURCE).with_suffix("") for path in modules()}
    folders = {folder for file in files for folder in file.parents if folder.name}
    return sorted(path.as_posix() for path in files | folders if not path.name.startswith("__"))


def is_action(name: str) -> bool:
    """Whether the last word of a module's name is a participle or a gerund."""
    word = name.rpartition("/")[2].rpartition("_")[2]
    return bool(GERUND.search(word)) and word not in NOUNS


def assigned_names(tree: ast.Module) -> Iterator[str]:
    """Names that a module assigns at its top level."""
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every variable, parameter and attribute that a module binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name is not None:
            yield node.name, node.lineno


def glossary() -> list[str]:
    """The words in the first column of the glossary, one by one."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| word | meaning |\n")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[1:]]
    return [word.strip(" *`") for cell in cells for word in re.split(r"[,/]", cell)]


def test_two_public_classes_never_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_modules_are_named_by_nouns() -> None:
    assert [name for name in module_names() if is_action(name)] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runs/watching", True),
        ("lab/compared", True),
        ("runs/time_scaling", False),
        ("state/sorted_layer", False),
        ("topics/embedded", False),
        ("state/mapped_files", False),
    ],
)
def test_only_the_last_word_of_a_module_counts(name: str, expected: bool) -> None:
    assert is_action(name) is expected


def test_limits_begin_with_max_or_min() -> None:
    limits = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in modules()
        for name in assigned_names(ast.parse(path.read_text(encoding="utf-8")))
        if OLD_LIMIT.match(name)
    }
    assert limits == set()


def test_the_glossary_has_every_word_once() -> None:
    words = glossary()
    assert {"pipeline", "operator", "replica", "snapshot", "policy", "wanted"} <= set(words)
    assert [word for word, count in Counter(words).items() if count > 1] == []


def test_names_say_what_they_hold() -> None:
    vague = {
        f"{path.relative_to(SOURCE)}:{line}: {name}"
        for path in modules()
        for name, line in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in VAGUE
    }
    assert vague == set()


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "for one in x: pass",
        "self._asked = 1",
        "lambda told: 0",
        "def f(*, said): pass",
    ],
)
def test_a_vague_name_is_noticed(code: str) -> None:
    assert VAGUE & {name.strip("_") for name, _ in bound_names(ast.parse(code))}
