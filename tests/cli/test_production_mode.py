"""Pipelines whose rows come from outside: how a run is named, stated and bounded."""

import math
import re
from pathlib import Path

import pytest

from penstock.cli.commands.run import EXAMPLES
from penstock.cli.main import main
from penstock.errors import InputError
from penstock.reports.run_statement import start_statement
from penstock.reports.run_view import ScreenView
from penstock.runs.execution import default_directory, prepare_policies
from penstock.runs.observer import StopRequest
from penstock.runs.preparation import LaunchOptions
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spec import SparkSpec

OPEN = """
from penstock import Pipeline

pipeline = Pipeline("shop", objective_s=3)
pipeline.topic("raw", "ts timestamp, amount double")
pipeline.topic("clicks", "ts timestamp, amount double", external=True)
pipeline.topic("large", "amount double")

@pipeline.ingest(writes="raw", time="ts")
def files(spark):
    return spark.readStream.schema("ts timestamp, amount double").json("in")

@pipeline.batches(reads=["raw", "clicks"], writes="large", min_replicas=2, replicas=2)
def keep_large(batch):
    return {"amount": batch["amount"]}

@pipeline.egress(reads="large")
def store(df):
    return df.writeStream.format("parquet").option("path", "out")
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.py"
    path.write_text(OPEN)
    return str(path)


def ready(shop: str, **more: object) -> PreparedSparkRun:
    return prepare_spark_run(SparkSpec(pipeline=shop, policy="ds2", **more))  # type: ignore[arg-type]


def test_a_run_without_a_workload_is_not_named_after_one(shop: str) -> None:
    prepared = ready(shop)
    assert prepared.workload == ""
    assert default_directory(prepared, "ds2").name.startswith("shop-ds2-2")
    images = prepare_spark_run(SparkSpec(pipeline="images"))
    assert default_directory(images, "queueing").name.startswith("images-pulsar-queueing-2")


def test_it_runs_until_it_is_stopped_or_for_some_minutes(shop: str) -> None:
    assert math.isinf(ready(shop).duration_s)
    assert ready(shop, minutes=5).duration_s == 300


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (("--workload", "pulsar"), "--workload"),
        (("--rate-scale", "2"), "--rate-scale"),
        (("--workload-param", "mean=9"), "--workload-param"),
    ],
)
def test_what_asks_for_a_workload_is_refused(
    shop: str, options: tuple[str, ...], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", shop, *options]) == 2
    assert f"error: {option}: shop has no topic to fill" in capsys.readouterr().err


def test_help_and_readme_say_how_it_is_used() -> None:
    told = [EXAMPLES, (Path(__file__).parents[2] / "README.md").read_text()]
    for text in (" ".join(text.lower().split()) for text in told):
        assert "production mode" in text
        assert re.search(r"takes no (--)?workload and runs until it is stopped", text)
    for code, problem in ((1, "lost"), (2, "options"), (130, "Ctrl-C"), (143, "SIGTERM")):
        (line,) = (line for line in EXAMPLES.splitlines() if re.match(rf"  (130, )?{code}\b", line))
        assert problem in line


def test_policies_are_compared_on_runs_that_end(shop: str) -> None:
    with pytest.raises(InputError, match="--minutes"):
        prepare_policies(SparkSpec(pipeline=shop), ["ds2", "psps"])
    assert list(prepare_policies(SparkSpec(pipeline=shop, minutes=1), ["ds2"])) == ["ds2"]


def test_the_statement_names_what_a_person_needs(shop: str) -> None:
    lines = start_statement(ready(shop), Path("runs/shop"))
    assert lines == [
        "shop: production mode, until it is stopped",
        "  sources    files -> raw (event time ts), clicks (other processes)",
        "  operators  keep_large 2-8",
        "  policy     ds2, every 15 s",
        "  objective  latency below 3 s",
        "  output     large -> store (egress)",
        "  directory  runs/shop (journal.jsonl, spark.log)",
        "  status     penstock status runs/shop",
        "  stop       Ctrl-C, or penstock stop runs/shop",
        "  resume     penstock run --resume runs/shop",
    ]


def test_a_run_begins_with_its_statement(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    prepared, directory = ready(shop), Path("runs/shop")
    with ScreenView(plain=True).watch(prepared, directory, StopRequest(), LaunchOptions()):
        told = capsys.readouterr().err
    assert told.splitlines() == start_statement(prepared, directory)


def test_the_statement_says_when_it_ends_by_itself_and_that_it_is_resumed(
    shop: str, tmp_path: Path
) -> None:
    (tmp_path / "journal.jsonl").touch()
    title = start_statement(ready(shop), tmp_path, available_now=True)[0]
    assert title.endswith(
        ": resumed, production mode, until the rows that are there now are processed"
    )


def test_the_statement_of_a_workload_names_it_and_fits_80_columns() -> None:
    lines = start_statement(
        prepare_spark_run(SparkSpec(pipeline="tweets-complex")), Path("runs/tweets")
    )
    assert "of a workload" in lines[0]
    assert "(pulsar)" in lines[1]
    assert any("penstock topics tail runs/tweets/topics/" in line for line in lines)  # the output
    assert max(map(len, lines)) <= 80


def test_the_guide_is_true(tmp_path: Path) -> None:
    """Its pipeline passes every check, and `penstock run` states what the guide shows."""
    guide = (Path(__file__).parents[2] / "docs" / "production.md").read_text()
    code, shown = (
        guide.split(f"```{kind}\n")[1].split("```")[0].strip() for kind in ("python", "text")
    )
    path = tmp_path / "orders.py"
    path.write_text(code)
    assert shown.splitlines() == start_statement(ready(str(path)), Path("runs/shop"))
