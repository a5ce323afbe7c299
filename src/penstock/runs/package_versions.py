"""The packages that Penstock requires, with their supported and their installed versions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

#: As in the metadata of a package: scikit-learn<2,>=1.6; extra == 'demo'
_REQUIREMENT = re.compile(
    r"([\w.-]+)\s*(?:\[.*?\])?\s*([^;]*)(?:;.*?extra\s*==\s*['\"](.+?)['\"])?"
)
_BOUND = re.compile(r"(>=|<)\s*([\d.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVersion:
    """A required package: the versions that Penstock supports, and the installed one."""

    name: str
    #: The extra that installs it; "" if Penstock always needs it.
    extra: str = ""
    #: Such as ">=4.2,<5"; "" for any version.
    supported: str = ""
    #: None: not installed.
    installed: str | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the installed version is within the supported ones."""
        if self.installed is None:
            return False
        version = _numbers(self.installed)
        for sign, bound in _BOUND.findall(self.supported):
            if (version >= _numbers(bound)) != (sign == ">="):
                return False
        return True


def parse_requirement(text: str, installed: str | None = None) -> PackageVersion:
    """Read one requirement of a package's metadata.

    >>> parse_requirement("pyspark<5,>=4.2", "4.3.0").is_supported
    True
    >>> parse_requirement("scikit-learn<2,>=1.6; extra == 'demo'").extra
    'demo'
    """
    match = _REQUIREMENT.match(text)
    if match is None:
        raise ValueError(f"not a requirement: {text!r}")
    bounds = sorted(match[2].replace(" ", "").strip("()").split(","), reverse=True)
    supported = ",".join(part for part in bounds if part)
    return PackageVersion(
        name=match[1], extra=match[3] or "", supported=supported, installed=installed
    )


def read_package_versions(package: str = "penstock") -> Iterator[PackageVersion]:
    """Yield what an installed package requires; nothing if it is not installed."""
    try:
        texts = metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        return
    for text in texts:
        required = parse_requirement(text)
        # `all` repeats the other extras
        if required.name != package and required.extra != "all":
            yield parse_requirement(text, _installed_version(required.name))


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers without trailing zeros: 5.0 is 5, and 5.0.dev1 counts as 5."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else [0]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
