"""Finding policies: by name, by file, by entry point."""

from importlib import metadata
from pathlib import Path

import pytest

from penstock.control import registry
from penstock.control.registry import find_policy, installed_policies
from penstock.errors import InputError


def test_by_name() -> None:
    assert find_policy("ds2").name == "ds2"


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        find_policy("dhallion")
    assert "did you mean 'dhalion'?" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("x = 1", "does not define POLICY", id="no policy in it"),
        pytest.param("1 / 0", "ZeroDivisionError", id="fails while loading"),
        pytest.param("def (", "SyntaxError", id="not Python"),
    ],
)
def test_a_file_that_is_no_policy(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        find_policy(str(path))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match="there is no file"):
        find_policy("./nowhere.py")


def offer(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Let some package offer an entry point."""
    entry = metadata.EntryPoint("theirs", value, registry.GROUP)
    real = metadata.entry_points

    def entry_points(**selected: str) -> object:
        return [entry] if selected.get("group") == registry.GROUP else real(**selected)

    monkeypatch.setattr(metadata, "entry_points", entry_points)


def test_another_package_offers_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "penstock.core.policies.static")
    assert installed_policies().keys() == {"static"}


@pytest.mark.parametrize("value", ["penstock.core.numbers", "no.such.module"])
def test_another_package_offers_something_else(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    offer(monkeypatch, value)
    with pytest.raises(InputError, match="entry point 'theirs'"):
        installed_policies()
