"""The wheel and the source archive: complete, and they work outside of the repository."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import __version__

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
STEM = f"penstock-{__version__}"


class Archives(NamedTuple):
    """The two files of a release."""

    wheel: Path
    sdist: Path


class Installation(NamedTuple):
    """An environment with the wheel, and an empty directory to work in."""

    binaries: Path
    desk: Path

    def run(self, *command: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment as a user with a clean shell would."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        environment["PATH"] = f"{self.binaries}{os.pathsep}{environment['PATH']}"
        return subprocess.run(
            [str(self.binaries / command[0]), *command[1:]],
            cwd=self.desk,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def build(project: Path, into: Path, *kinds: str) -> None:
    """Build archives of a project with the hatchling of this environment; needs no network."""
    targets = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", *targets, "-d", str(into)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    into = tmp_path_factory.mktemp("dist")
    build(ROOT, into, "wheel", "sdist")
    return Archives(into / f"{STEM}-py3-none-any.whl", into / f"{STEM}.tar.gz")


@pytest.fixture(scope="module")
def installation(archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel in a new environment that borrows the dependencies of this one.

    A .pth file adds the packages of this environment to the path, but Python does not follow the
    .pth files in there, so the editable Penstock stays out. The wheel is installed first: pip
    would otherwise find the editable one and replace it.
    """
    home = tmp_path_factory.mktemp("user")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
    python = home / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    install = ["install", "--quiet", "--no-index", "--no-deps", str(archives.wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True)
    borrowed = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (Path(packages.stdout.strip()) / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")
    (home / "desk").mkdir()
    return Installation(python.parent, home / "desk")


def names_in(wheel: Path) -> set[str]:
    """Every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def package_files() -> set[str]:
    """Every file of the package in the repository, by its path in a wheel."""
    files = (path for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(SOURCE.parent).as_posix() for path in files}


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_nothing_else(archives: Archives) -> None:
    names = names_in(archives.wheel)
    assert {name for name in names if not name.startswith(f"{STEM}.dist-info/")} == package_files()
    # a wrong ignore rule would hide these from both sides of the comparison above
    assert {
        "penstock/py.typed",
        "penstock/workloads/data/bursty.csv",
        "penstock/engines/simulator/profiles/spark.toml",
        "penstock/engines/simulator/pipelines/q5.toml",
        "penstock/demos/images.py",
        "penstock/runs/spec.py",
        f"{STEM}.dist-info/licenses/LICENSE",
    } <= names


@pytest.mark.slow
def test_the_source_archive_builds_the_same_wheel(archives: Archives, tmp_path: Path) -> None:
    with tarfile.open(archives.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / STEM
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "requirements.lock"):
        assert (source / name).is_file(), name
    build(source, tmp_path, "wheel")
    assert names_in(tmp_path / archives.wheel.name) == names_in(archives.wheel)


@pytest.mark.slow
def test_the_environment_imports_the_wheel(installation: Installation) -> None:
    asked = (
        "import importlib.metadata as m, penstock; print(penstock.__file__, m.version('penstock'))"
    )
    done = installation.run("python", "-c", asked)
    place, version = done.stdout.split()
    assert Path(place).is_relative_to(installation.binaries.parent), place
    assert version == __version__


@pytest.mark.slow
def test_commands_work_in_an_empty_directory(installation: Installation) -> None:
    version = installation.run("penstock", "--version")
    assert (version.returncode, version.stdout) == (0, f"penstock {__version__}\n")
    simulated = installation.run("penstock", "simulate", "--minutes", "5", "--no-out")
    assert simulated.returncode == 0, simulated.stderr
    assert "replicas" in simulated.stdout
    assert list(installation.desk.iterdir()) == []
    (installation.desk / "snapshots.jsonl").write_text(SNAPSHOTS)
    decided = installation.run("penstock", "decide", "--policy", "ds2", "snapshots.jsonl")
    assert decided.returncode == 0, decided.stderr
    decisions = [json.loads(line) for line in decided.stdout.splitlines()]
    assert [each["targets"]["parse"]["wanted"] for each in decisions] == [7, 4]


#: An operator of which one replica processes 100 records/s, under two loads.
PARSE = {"parallelism": 4, "input_rate": 400, "output_rate": 400, "busy": 1.0}
SNAPSHOTS = "".join(
    json.dumps({"at": at, "offered": {"parse": rate}, "operators": {"parse": PARSE}}) + "\n"
    for at, rate in ((30, 700), (45, 400))
)
#: Writes where the driver and the workers import Penstock from, beside the number of each row.
PIPELINE = """
import penstock
from penstock import Pipeline

pipeline = Pipeline("places", objective_s=3)
pipeline.topic("numbers", "id long, place string")
pipeline.topic("places", "id long, driver string, worker string")

@pipeline.produces("numbers", arrivals="deterministic")
def count(first_id, due):
    ids = range(first_id, first_id + len(due))
    return {"id": ids, "place": [penstock.__file__] * len(ids)}

@pipeline.batches(reads="numbers", writes="places")
def note_place(batch):
    import penstock
    worker = [penstock.__file__] * batch.num_rows
    return {"id": batch["id"], "driver": batch["place"], "worker": worker}
"""


@pytest.mark.spark
def test_a_pipeline_file_runs_on_spark(installation: Installation) -> None:
    (installation.desk / "places.py").write_text(PIPELINE)
    options = ["--workload", "constant", "--workload-param", "rate=20", "--minutes", "0.2"]
    command = ["penstock", "run", "./places.py", *options, "--out", "run", "--plain"]
    done = installation.run(*command, timeout_s=240)
    assert done.returncode == 0, done.stderr
    topic = installation.desk / "run" / "topics" / "places"
    shown = installation.run("penstock", "topics", "tail", str(topic), "-n", "1000", "--json")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert sorted(row["id"] for row in rows) == list(range(240))
    places = {Path(row[process]) for row in rows for process in ("driver", "worker")}
    assert all(place.is_relative_to(installation.binaries.parent) for place in places), places
