"""Processes of a run import the installed PySpark, and read no archives."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.engines.spark.cluster.jvm import link_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_home_of_links_lacks_the_archive_and_is_left_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    home = tmp_path / "a home"
    with link_home(home):
        assert os.environ["SPARK_HOME"] == str(home)
        assert (home / "bin" / "spark-submit").is_file()
        assert (home / "jars").is_dir()
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in os.environ


def test_an_installation_elsewhere_keeps_its_own_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "opt"
    for name in ("bin", "jars", "python", "work"):
        (installed / name).mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(installed))
    with link_home(tmp_path / "home"):
        linked = {path.name for path in (tmp_path / "home").iterdir()}
    assert linked == {"bin", "jars", "python"}
    assert os.environ["SPARK_HOME"] == str(installed)


def import_paths(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import sys  # noqa: PLC0415  (in the worker)

    import pyspark  # noqa: PLC0415

    for _ in batches:
        archives = [path for path in sys.path_importer_cache if path.endswith(".jar")]
        found = [pyspark.__file__, *archives]
        yield pa.RecordBatch.from_pydict({"path": found})


@pytest.mark.spark
def test_workers_import_the_pyspark_that_the_driver_has(spark: "SparkSession") -> None:
    import pyspark  # noqa: PLC0415  (loads Spark)

    rows = spark.range(0, 1, 1, 1).mapInArrow(import_paths, "path string").collect()
    assert [row.path for row in rows] == [pyspark.__file__]
