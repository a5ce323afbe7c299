"""A run directory: what was asked comes back, and nothing is overwritten."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import __version__
from penstock.errors import InputError
from penstock.runs.result import RunResult
from penstock.runs.result_parts import CountStatistics, RunScores
from penstock.runs.run_directory import begin_run, default_place, finish_run, open_run, read_run
from penstock.runs.spec import SimulationSpec, SparkSpec, read_spec

RECORDED = Path(__file__).parents[1] / "recorded"
RESULT = RunResult(spec={}, scores=RunScores(replicas=CountStatistics(avg=2.0, max=3), rescales=3))

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
plain = words | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.booleans()
values = plain | st.lists(plain, max_size=3)
tables = st.dictionaries(words, values | st.dictionaries(words, values, max_size=3), max_size=4)


def keep(directory: Path, spec: dict[str, Any]) -> Path:
    with begin_run(directory, spec, {"policy": "ds2"}):
        pass
    return directory


@given(spec=tables)
def test_whatever_was_asked_comes_back(spec: dict[str, Any]) -> None:
    with TemporaryDirectory() as root:
        assert read_run(keep(Path(root) / "run", spec)).spec == spec


def test_a_spec_comes_back_as_itself(tmp_path: Path) -> None:
    spec = SimulationSpec(
        query="q11",
        workload="cosine * 0.5 + constant(rate=1e3)",
        policy="static",
        minutes=7,
        seed=-3,
        params={"replicas": {"*": 3, "a b": 4}, "file": 'C:\\x\n"y"\x7f'},
        guards={"cooldown_s": "off"},
        workload_params={"mean": 1e6},
        profile={"monitor.busy_sees": 0.5},
        initial={"source": 2},
        mode="reactive",
        objective_s=1.5,
        interval_s=30.0,
    )
    run = read_run(keep(tmp_path / "run", spec.to_json()))
    assert SimulationSpec.from_json(run.spec) == spec
    assert SimulationSpec.from_json(SimulationSpec().to_json()) == SimulationSpec()


def test_an_unknown_field_of_a_spec_is_named() -> None:
    with pytest.raises(InputError, match="polcy: unknown field of a run\nhint: did you mean 'pol"):
        SimulationSpec.from_json({"polcy": "ds2"})


def test_a_run_knows_its_versions_and_its_header(tmp_path: Path) -> None:
    run = read_run(keep(tmp_path / "run", {}))
    assert run.versions["penstock"] == __version__ and run.versions["python"].startswith("3.")
    assert run.journal.run == {"policy": "ds2"}


def test_a_run_without_result_did_not_finish(tmp_path: Path) -> None:
    assert read_run(keep(tmp_path, {})).result is None
    finish_run(tmp_path, RESULT)
    assert read_run(tmp_path).result == RESULT
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "journal.jsonl", "result.json", "run.toml",
    ]  # fmt: skip


def test_a_result_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    finish_run(tmp_path, RESULT)
    with pytest.raises(TypeError):
        finish_run(tmp_path, RunResult(spec={"policy": object()}))
    assert json.loads((tmp_path / "result.json").read_text()) == RESULT.to_json()


def test_a_directory_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"out: this directory is not empty\nhint: choose another"):
        keep(tmp_path, {})
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_place_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="out: cannot be a run directory"):
        keep(tmp_path / "file", {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 2\n[spec]\n", "run.toml: version: cannot read version 2, only 1"),
        ("version = 1\n", "run.toml: spec: missing"),
        ("version = \n", "run.toml: not TOML"),
        (None, "is not a run directory\nhint: a run is a directory with run.toml"),
    ],
)
def test_other_directories_are_refused(tmp_path: Path, text: str | None, problem: str) -> None:
    if text is not None:
        (tmp_path / "run.toml").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_run(tmp_path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: there is no such directory"):
        read_run(tmp_path / "nowhere")


def test_a_broken_result_is_named(tmp_path: Path) -> None:
    keep(tmp_path, {})
    (tmp_path / "result.json").write_text('{"rescales": ')
    with pytest.raises(InputError, match=r"result\.json: not JSON"):
        read_run(tmp_path)


def test_the_default_place_is_free(tmp_path: Path) -> None:
    parts = ("mine/q7.toml", "cosine * 2 then dns", "./my_policy.py")
    names = []
    for _ in range(3):
        place = default_place(parts, "20260131-120000", tmp_path)
        place.mkdir()
        names.append(place.name)
    first = "q7-cosine-2-then-dns-my-policy-20260131-120000"
    assert names == [first, f"{first}-2", f"{first}-3"]


def test_a_run_recorded_by_version_1_is_read(tmp_path: Path) -> None:
    for kept, name in (
        ("run-v1.toml", "run.toml"),
        ("journal-v1.jsonl", "journal.jsonl"),
        ("result-v1.json", "result.json"),
    ):
        shutil.copy(RECORDED / kept, tmp_path / name)
    run = read_run(tmp_path)
    assert run.versions == {"penstock": "0.1.0", "python": "3.11.7"}
    assert SimulationSpec.from_json(run.spec) == SimulationSpec(
        workload="cosine * 1.2",
        policy="dhalion",
        minutes=11,
        guards={"cooldown_s": "180"},
        profile={"queues.retention_s": "120", "queues.retention_block_s": "0"},
        initial=3,
    )
    assert run.journal.run["spec"] == run.spec
    assert run.result is not None and run.result.spec == run.spec


HEADER = {"policy": "ds2"}


def resume(directory: Path, spec: dict[str, Any]) -> float:
    with open_run(directory, spec, HEADER) as journal:
        return journal.start_s


def test_a_run_is_begun_and_then_resumed(tmp_path: Path) -> None:
    spec = {"policy": "ds2", "guards": {"budget": 8}, "operators": ["a", "b"]}
    place = tmp_path / "run"
    assert resume(place, spec) == 0
    finish_run(place, RESULT)
    with (place / "journal.jsonl").open("a") as journal:
        journal.write((RECORDED / "journal-v1.jsonl").read_text().splitlines()[1] + "\n{")
    assert resume(place, {**spec, "operators": ("a", "b")}) == 15
    run = read_run(place)
    assert run.spec == spec and run.journal.run == HEADER
    assert [tick.at for tick in run.journal.ticks] == [15]
    assert run.result is None  # it has not finished after all
    assert not (place / "result.json").exists()


def test_whenever_a_beginning_was_killed_the_run_begins(tmp_path: Path) -> None:
    def only_locked(place: Path) -> None:
        place.mkdir()
        (place / "lock").write_text("17")

    def asking(place: Path) -> None:
        only_locked(place)
        (place / "run.toml.tmp").write_text("version = ")

    def asked(place: Path) -> None:
        resume(place, {"policy": "ds2"})
        (place / "journal.jsonl").unlink()

    def half_a_header(place: Path) -> None:
        resume(place, {"policy": "ds2"})
        (place / "journal.jsonl").write_text('{"version":1,"ru')

    for n, killed in enumerate((only_locked, asking, asked, half_a_header)):
        place = tmp_path / str(n)
        killed(place)
        assert resume(place, {"policy": "ds2"}) == 0
        run = read_run(place)
        assert (run.journal.run, run.journal.ticks) == (HEADER, ())
        assert not (place / "run.toml.tmp").exists()


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"policy": "dhalion"}, "policy: the run in this directory has 'ds2', now 'dhalion' is"),
        ({"guards": {"budget": 9}}, "guards.budget: the run in this directory has 8, now 9 is"),
        ({"guards": {}}, "guards.budget: the run in this directory has 8, now nothing is"),
        ({"seed": 7}, "seed: the run in this directory has nothing, now 7 is asked for\nhint: ask"),
    ],
)
def test_a_run_that_was_asked_for_something_else_is_not_resumed(
    tmp_path: Path, asked: dict[str, Any], problem: str
) -> None:
    spec = {"policy": "ds2", "guards": {"budget": 8}}
    resume(tmp_path, spec)
    finish_run(tmp_path, RESULT)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: {problem}")):
        open_run(tmp_path, {**spec, **asked}, HEADER)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_who_does_not_want_to_resume_needs_an_empty_directory(tmp_path: Path) -> None:
    open_run(tmp_path, {}, HEADER, resume=False).__exit__(None, None, None)
    with pytest.raises(InputError, match="this directory is not empty"):
        open_run(tmp_path, {}, HEADER, resume=False)


def test_what_is_no_run_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="this directory is not empty"):
        open_run(tmp_path, {}, HEADER)


@given(spec=tables)
def test_whatever_was_asked_can_be_resumed_by_asking_the_same(spec: dict[str, Any]) -> None:
    with TemporaryDirectory() as root:
        keep(Path(root) / "run", spec)
        assert resume(Path(root) / "run", spec) == 0


def test_a_run_with_the_earlier_name_of_build_args_is_read_and_resumed(tmp_path: Path) -> None:
    spec = SparkSpec(pipeline="images", build_args={"service_s": "0.2"})
    place = tmp_path / "run"
    assert resume(place, spec.to_json()) == 0
    earlier = (place / "run.toml").read_text(encoding="utf-8").replace("build_args", "numbers")
    assert "[spec.numbers]" in earlier
    (place / "run.toml").write_text(earlier, encoding="utf-8")
    assert read_spec(place) == spec
    assert read_run(place).spec == spec.to_json()
    resume(place, spec.to_json())
    with pytest.raises(InputError, match=r"build_args\.service_s: .* has '0\.2', now '0\.3'"):
        resume(place, replace(spec, build_args={"service_s": "0.3"}).to_json())
