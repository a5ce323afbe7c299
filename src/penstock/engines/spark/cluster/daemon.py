"""The daemon from which Spark forks its Python workers, with everything imported beforehand.

A new worker then starts in milliseconds and shares the memory of what was imported.
"""

import gc
import os
import sys

# one thread a replica: replicas are the parallelism
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: F401
import pandas as pd  # type: ignore[import-untyped]  # noqa: F401  (pyarrow will)
import pyarrow as pa
import pyarrow.compute
import pyspark.daemon
import pyspark.sql.streaming.python_streaming_source_runner
import pyspark.sql.worker.python_streaming_sink_runner
import pyspark.sql.worker.write_into_data_source
import pyspark.worker

import penstock.engines.spark.io.sink
import penstock.engines.spark.io.source  # noqa: F401
from penstock.engines.spark.cluster.worker_imports import import_listed
from penstock.engines.spark.kinds.kind import import_built_in


def forget_jars() -> None:
    """Take Spark's jar off the path: each new worker would read its index, and find no module."""
    for entry in [entry for entry in sys.path if entry.endswith(".jar")]:
        sys.path.remove(entry)
        sys.path_importer_cache.pop(entry, None)


if __name__ == "__main__":
    forget_jars()
    pa.set_cpu_count(1)
    import_built_in()
    import_listed()
    gc.collect()
    gc.freeze()  # workers share these pages as long as nobody walks over them
    pyspark.daemon.manager()
