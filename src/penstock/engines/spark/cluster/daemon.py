"""The daemon that forks Python workers, with all modules imported in advance.

A new worker starts in milliseconds and shares the memory of the imported modules.
"""

import gc
import os
import sys

# one thread per replica: replicas are the parallelism
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
from penstock.engines.spark.cluster.worker_process import import_module_list
from penstock.engines.spark.kinds.kind import import_built_in


def remove_jars() -> None:
    """Remove Spark's jar from the path: each new worker would read its index for nothing."""
    for entry in [entry for entry in sys.path if entry.endswith(".jar")]:
        sys.path.remove(entry)
        sys.path_importer_cache.pop(entry, None)


if __name__ == "__main__":
    remove_jars()
    pa.set_cpu_count(1)
    import_built_in()
    import_module_list()
    gc.collect()
    gc.freeze()  # workers share these pages as long as the collector leaves them alone
    pyspark.daemon.manager()
