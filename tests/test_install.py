"""The lock is installed as it is, whatever else has been published since."""

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "install.sh"
pytestmark = pytest.mark.slow
#: What tests put into the new environment.
INSTALLED = ("app", "lib", "source", "setuptools")


def write_wheel(
    index: Path,
    name: str,
    version: str,
    metadata: Sequence[str] = (),
    modules: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Write a package into a local index; return its line for a lock."""
    info = f"{name}-{version}.dist-info"
    headers = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata]
    files = {
        f"{name}.py": f"version = {version!r}\n",
        **modules,
        f"{info}/METADATA": "\n".join(headers) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {path: base64.urlsafe_b64encode(_digest(text)) for path, text in files.items()}
    rows = [f"{path},sha256={digests[path].decode().rstrip('=')}," for path in files]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    wheel = index / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return _pin(name, version, wheel)


def _pin(name: str, version: str, file: Path) -> str:
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


#: Builds a package that is published as source.
BACKEND = """
import pathlib, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    info, name = "source-1.0.dist-info", "source-1.0-py3-none-any.whl"
    files = {
        "source.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: source\\nVersion: 1.0\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name
"""


def write_source(index: Path, backend: str) -> str:
    """Write a package that is published as source only; return its line for a lock."""
    system = f'requires = ["setuptools"]\nbuild-backend = "{backend}"\n'
    files = {
        "pyproject.toml": f"[build-system]\n{system}",
        "PKG-INFO": "Metadata-Version: 2.1\nName: source\nVersion: 1.0\n",
    }
    path = index / "source-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"source-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return _pin("source", "1.0", path)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class Index:
    """Packages as on the day of the lock, and a release of `lib` that came later."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        extra = ["Provides-Extra: extra"]
        self.app = write_wheel(directory, "app", "1.0", ["Requires-Dist: lib[extra]>=1.0"])
        self.lib = write_wheel(directory, "lib", "1.0", extra)
        write_wheel(directory, "lib", "2.0", extra)

    @property
    def environment(self) -> dict[str, str]:
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.directory), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    directory = tmp_path / "index"
    directory.mkdir()
    return Index(directory)


@pytest.fixture(scope="module")
def new_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment, in a path with a space."""
    environment = tmp_path_factory.mktemp("machine") / "new machine" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    return environment / "bin" / "python"


@pytest.fixture
def python(new_python: Path, index: Index) -> Iterator[Path]:
    """The same interpreter for all tests, without what the last one installed."""
    yield new_python
    run(new_python, "-m", "pip", "uninstall", "--yes", *INSTALLED, index=index)


def run(*command: str | Path, index: Index) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        env=index.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_newer_release_of_a_pinned_extra_changes_nothing(
    tmp_path: Path, index: Index, python: Path
) -> None:
    lock = tmp_path / "the lock"
    lock.write_text(index.app + index.lib)
    resolving = ["-m", "pip", "install", "--dry-run", "--require-hashes", "-r", lock]
    resolved = run(python, *resolving, index=index)
    assert resolved.returncode == 1, "the index must be one that breaks an install that resolves"
    assert "versions pinned with ==" in resolved.stderr
    done = run("sh", SCRIPT, python, lock, index=index)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    version = run(python, "-c", "import app, lib; print(lib.version)", index=index)
    assert version.stdout == "1.0\n", version.stderr


def test_a_lock_that_lacks_a_package_is_refused(tmp_path: Path, index: Index, python: Path) -> None:
    lock = tmp_path / "short.lock"
    lock.write_text(index.app)
    done = run("sh", SCRIPT, python, lock, index=index)
    assert done.returncode == 2
    assert "app 1.0 requires lib, which is not installed." in done.stderr
    assert "short.lock is incomplete: pin everything again with make lock" in done.stderr


def test_what_is_published_as_source_is_built_with_the_pinned_tools(
    tmp_path: Path, index: Index, python: Path
) -> None:
    """The newest setuptools builds differently, or not at all."""
    tools = write_wheel(index.directory, "setuptools", "1.0", modules={"lock_build.py": BACKEND})
    write_wheel(index.directory, "setuptools", "99.0", modules={"lock_build.py": "raise OSError"})
    lock = tmp_path / "lock"
    lock.write_text(write_source(index.directory, "lock_build") + tools)
    done = run("sh", SCRIPT, python, lock, index=index)
    assert done.returncode == 0, done.stderr
    built = run(python, "-c", "import source, setuptools; print(setuptools.version)", index=index)
    assert built.stdout == "1.0\n", built.stderr


def test_a_package_that_is_not_as_pinned_is_refused(
    tmp_path: Path, index: Index, python: Path
) -> None:
    lock = tmp_path / "lock"
    lock.write_text(index.app + index.lib)
    write_wheel(index.directory, "lib", "1.0", ["Summary: not the one of the lock"])
    done = run("sh", SCRIPT, python, lock, index=index)
    assert done.returncode == 2
    assert "DO NOT MATCH THE HASHES" in done.stderr
