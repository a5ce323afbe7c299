"""Small files of a run that are empty or damaged: one message, never a traceback."""

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.pipelines.description import describe
from penstock.runs.result import RunResult
from penstock.runs.run_directory import begin_run, finish_run
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import SparkSpec

FILES = ("result.json", "run.toml", "pipeline.json", "orders/double.json", "native/double.json")
DAMAGE = (b"", b"[]", b"{", b"null", b"\xff\xfe", b'{"ended": 3}')
COMMANDS = ("explain", "status", "replay --policy ds2", "topics check", "state ls", "state check")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pipeline") / "one.py"
    path.write_text(
        "from penstock import Pipeline\n"
        "PIPELINE = Pipeline('one')\n"
        "PIPELINE.topic('a', 'id long')\n"
        "PIPELINE.topic('b', 'id long')\n"
        "PIPELINE.produces('a')(lambda first_id, due: None)\n"
        "@PIPELINE.batches(reads='a', writes='b')\n"
        "def double(batch):\n"
        "    return batch\n"
    )
    return path


@pytest.mark.parametrize("content", DAMAGE)
@pytest.mark.parametrize("file", FILES)
def test_no_command_ends_with_a_traceback(
    pipeline: Path, tmp_path: Path, file: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    run, prepared = tmp_path / "run", prepare_spark_run(SparkSpec(pipeline=str(pipeline)))
    with begin_run(run, prepared.spec.to_json(), prepared.header()):
        pass
    (run / "pipeline.json").write_text(json.dumps(describe(prepared.pipeline)))
    finish_run(run, RunResult.from_json({"ended": "finished", "spec": prepared.spec.to_json()}))
    (run / file).parent.mkdir(exist_ok=True)
    (run / file).write_bytes(content)
    for command in COMMANDS:
        code = main([*command.split(), str(run)])
        told = capsys.readouterr().err
        assert code in (0, 1, 2, 3), command
        assert code != 2 or told.startswith("error: "), command
    if file == "result.json" and content != DAMAGE[-1]:
        assert main(["run", "--resume", str(run)]) == 2
        assert f"{run / file}: is empty or damaged" in capsys.readouterr().err
