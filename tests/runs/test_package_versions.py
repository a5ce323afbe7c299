"""Requirements as packages state them, and the versions that satisfy them."""

import pytest
from packaging.requirements import Requirement

from penstock.runs.package_versions import parse_requirement, read_package_versions

REQUIREMENTS = [
    "numpy<3,>=2.0",
    "pyspark<5,>=4.2",
    "protobuf (>=6.33.5,<7)",
    "duckdb",
    "scikit-learn<2,>=1.6; extra == 'demo'",
    'penstock[demo,plots]>=0.1; python_version > "3.9" and extra == "all"',
]


@pytest.mark.parametrize("text", REQUIREMENTS)
def test_parts_are_those_that_pip_reads(text: str) -> None:
    ours, theirs = parse_requirement(text), Requirement(text)
    assert ours.name == theirs.name
    assert set(filter(None, ours.supported.split(","))) == set(map(str, theirs.specifier))
    extra = ours.extra
    assert theirs.marker is None or theirs.marker.evaluate({"extra": extra})
    assert bool(extra) == ("extra" in text)


@pytest.mark.parametrize("text", REQUIREMENTS)
@pytest.mark.parametrize(
    "version",
    [
        "0.0.9",
        "1.6",
        "1.6.1",
        "2",
        "2.0.0",
        "3.0.1",
        "4.1.9",
        "4.2",
        "4.10",
        "5.0.0",
        "6.33.5",
        "7",
    ],
)
def test_supported_versions_are_those_that_pip_accepts(text: str, version: str) -> None:
    assert parse_requirement(text, version).is_supported == Requirement(text).specifier.contains(
        version
    )


def test_a_package_that_is_missing_is_not_supported() -> None:
    assert not parse_requirement("duckdb").is_supported


def test_the_installed_penstock_names_its_packages() -> None:
    packages = {package.name: package for package in read_package_versions()}
    assert packages["pyspark"].extra == "" and packages["pyspark"].is_supported
    assert packages["matplotlib"].extra == "plots"
    assert "penstock" not in packages


def test_a_package_that_is_not_installed_requires_nothing() -> None:
    assert list(read_package_versions("no-such-package")) == []
