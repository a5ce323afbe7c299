"""A Spark home of symbolic links for one run, without the parts that slow its processes down."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

_VARIABLE = "SPARK_HOME"
#: Written by workers of a cluster, whatever they are configured with.
_WORK = "work"
#: Holds a copy of PySpark as source in an archive. It would come first on the path of each Python
#: process, which then compiles what it imports, and reads the archive's index in each worker.
_PYTHON = "python"


@contextmanager
def link_home(place: Path) -> Iterator[None]:
    """Let a JVM that is started here use a directory of links as its installation of Spark."""
    installed = Path(_find_spark_home())
    skipped = {_WORK}
    if installed.samefile(Path(pyspark.__file__).parent):  # workers can import the same PySpark
        skipped.add(_PYTHON)
    place.mkdir()
    for path in installed.iterdir():
        if path.name not in skipped:
            (place / path.name).symlink_to(path)
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(place)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
