"""Without an optional package, everything that needs it names the extra that installs it."""

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.cli.main import main
from penstock.demos.pictures import digits
from penstock.demos.texts import name_shape
from penstock.errors import InputError
from penstock.extras import OPTIONAL, check_optional, import_optional, install_command
from penstock.nexmark.truths import difference
from penstock.reports.canvas import new_figure
from penstock.runs.package_versions import parse_requirement

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every optional package, and what an earlier test may have trained with one."""
    for name in [*sys.modules, *OPTIONAL]:
        if name.partition(".")[0] in OPTIONAL:
            monkeypatch.setitem(sys.modules, name, None)
    for cached in (digits.halves, digits.train_recogniser, name_shape.train_classifier):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("use", "needs"),
    [
        pytest.param(lambda: digits.photos(np.arange(3)), "scikit-learn demo", id="photos"),
        pytest.param(digits.train_recogniser, "scikit-learn demo", id="recogniser"),
        pytest.param(name_shape.train_classifier, "scikit-learn demo", id="classifier of names"),
        pytest.param(lambda: new_figure(3.0), "matplotlib plots", id="charts"),
        pytest.param(
            lambda: difference(pa.table({"a": [1]}), pa.table({"a": [1]})),
            "duckdb nexmark",
            id="expected rows",
        ),
    ],
)
def test_code_that_needs_a_package_names_its_extra(
    use: Callable[[], object], needs: str, bare: None
) -> None:
    package, extra = needs.split()
    with pytest.raises(InputError, match=rf"needs {package}: .* 'WHEEL\[{extra}\]'"):
        use()


@pytest.mark.parametrize(
    ("command", "need", "extra"),
    [
        ("workload cosine --plot load.svg", "--plot: needs matplotlib", "plots"),
        ("run images", "pipeline images: needs scikit-learn", "demo"),
        ("check dns", "pipeline dns: needs scikit-learn", "demo"),
        ("pubsub serve --dir service --local", "penstock pubsub serve: needs starlette", "pubsub"),
        ("pubsub publish {}", "penstock pubsub publish: needs httpx", "pubsub"),
        ("nexmark verify --query q1 --events 9", "needs duckdb", "nexmark"),
    ],
)
def test_a_command_ends_with_one_line_and_exit_code_2(
    command: str,
    need: str,
    extra: str,
    bare: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ") and told.endswith(f"{need}: {install_command(extra)}\n")
    assert len(told.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "package"),
    [
        ("dashboard run --port 0", "uvicorn"),
        ("top run", "rich"),
        ("report run -o report.html", "jinja2"),
        ("run words --metrics-port 0 --minutes 0.1", "prometheus-client"),
    ],
)
def test_what_shows_a_run_needs_the_extra_dashboard(
    command: str,
    package: str,
    bare: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "--minutes", "2", "--out", "run"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(command.split()) == 2
    message = f"needs {package}: {install_command('dashboard')}\n"
    assert capsys.readouterr().err.endswith(message)


@pytest.mark.parametrize("command", ["check words", "simulate --minutes 2 --no-out", "policies"])
def test_other_commands_need_no_extra(command: str, bare: None) -> None:
    assert main(command.split()) == 0


def test_a_package_that_is_there_but_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "duckdb.py").write_text("import a_package_that_nobody_has\n")
    monkeypatch.delitem(sys.modules, "duckdb", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    check_optional("duckdb", "this")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_nobody_has"):
        import_optional("duckdb", "this")
    monkeypatch.delitem(sys.modules, "duckdb", raising=False)


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = {
        (parse_requirement(text).name, extra)
        for extra, texts in extras.items()
        for text in texts
        if extra != "all"
    }
    assert declared == {(name, extra) for name, *known in OPTIONAL.values() for extra in known}
    assert extras["all"] == [f"penstock[{','.join(sorted(set(extras) - {'all'}))}]"]
