"""Finding pipelines by name and in files."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from penstock import demos as room
from penstock.errors import InputError
from penstock.pipelines.loader import load_file, shipped_modules
from penstock.runs.build_args import demo_names, load_pipeline

FILE = """
from penstock import Pipeline
{extra}
pipeline = Pipeline({name!r})
pipeline.topic("numbers", "n long", external=True)
pipeline.topic("doubled", "n long")

def double(value):
    return value * 2

@pipeline.batches(reads="numbers", writes="doubled")
def doubling(batch):
    return {{"n": [double(n) for n in batch["n"].to_pylist()]}}
"""


@pytest.fixture(autouse=True)
def path_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def write(path: Path, name: str = "numbers", extra: str = "") -> Path:
    path.write_text(FILE.format(name=name, extra=extra))
    return path


def test_a_file(tmp_path: Path) -> None:
    pipeline = load_pipeline(str(write(tmp_path / "mine.py")))
    assert pipeline.check().order == ("doubling",)
    assert pipeline.operators["doubling"].try_rows([{"n": 4}]) == [{"n": 8}]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_files_of_one_name_do_not_meet_and_a_changed_one_is_read_again(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "mine.py", name=folder)
    paths = [str(tmp_path / folder / "mine.py") for folder in ("a", "b")]
    loaded = [load_pipeline(path) for path in paths]
    assert [pipeline.name for pipeline in loaded] == ["a", "b"]
    modules = {pipeline.operators["doubling"].function.__module__ for pipeline in loaded}
    assert len(modules) == 2 and modules <= set(sys.modules)
    write(tmp_path / "a" / "mine.py", name="c")
    assert load_pipeline(paths[0]).name == "c"


def test_functions_can_be_sent_to_processes_that_have_no_file(tmp_path: Path) -> None:
    (tmp_path / "factors.py").write_text("def twice(value):\n    return value * 2\n")
    path = write(tmp_path / "mine.py", extra="from factors import twice as double")
    path.write_text(path.read_text().replace("def double(value):\n    return value * 2\n", ""))
    pipeline = load_pipeline(str(path))
    modules = shipped_modules(pipeline)
    assert sorted(Path(str(module.__file__)).name for module in modules) == [
        "factors.py",
        "mine.py",
    ]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    sent = cloudpickle.dumps(pipeline.operators["doubling"])
    code = (
        "import sys, pickle\n"
        "operator = pickle.loads(sys.stdin.buffer.read())\n"
        "print(operator.try_rows([{'n': 4}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[{'n': 8}]"
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules[module.__name__]


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("x = 1\nif x\n", ":2", "is not Python: expected ':'"),
        ("x = 1\n\nx / 0\n", ":3", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("import nothing_of_that_name\n", ":1", "ModuleNotFoundError"),
        ("from penstock import Pipeline\nPipeline('a b')\n", ":2", "cannot be called 'a b'"),
        ("x = 1\n", "", "there is none in this file"),
        (
            "from penstock import Pipeline\np, q = Pipeline('p'), Pipeline('q')\n",
            "",
            "there are 2 in this file: 'p', 'q'",
        ),
    ],
)
def test_mistakes_in_a_file_are_told_with_their_line(
    tmp_path: Path, text: str, where: str, problem: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    before = set(sys.modules)
    with pytest.raises(InputError) as wrong:
        load_pipeline(str(path))
    assert wrong.value.where == f"{path}{where}"
    assert problem in wrong.value.problem
    left = [name for name in set(sys.modules) - before if "mine" in name]
    assert not (where and left)


def test_one_pipeline_under_two_names_is_one(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py")
    path.write_text(path.read_text() + "\nalso = pipeline\n")
    assert load_pipeline(str(path)).name == "numbers"


def test_no_such_file_and_no_such_name() -> None:
    with pytest.raises(InputError, match=r"there is no file 'none\.py'"):
        load_pipeline("none.py")
    with pytest.raises(InputError) as wrong:
        load_pipeline("nobody-has-this")
    assert "./my_pipeline.py" in wrong.value.hint
    with pytest.raises(InputError, match="there is no file"):
        load_file(Path("none.py"))


def test_ready_pipelines_are_found_by_their_files() -> None:
    (folder,) = room.__path__
    files = {path.stem.replace("_", "-") for path in Path(folder).glob("[a-z]*.py")}
    assert set(demo_names()) == files


@pytest.mark.parametrize("name", demo_names())
def test_every_ready_pipeline_passes_the_check(name: str) -> None:
    pipeline = load_pipeline(name)
    assert pipeline.name == name and pipeline.summary
    assert pipeline.check().order
    assert shipped_modules(pipeline) == ()
