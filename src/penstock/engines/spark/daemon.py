"""The daemon from which Spark forks its Python workers, with everything imported beforehand.

A new worker then starts in milliseconds and shares the memory of what was imported.
"""

import os

# one thread a replica: replicas are the parallelism
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402, F401
import pandas as pd  # noqa: E402, F401  (pyarrow imports it at the first array that it makes)
import pyarrow as pa  # noqa: E402
import pyarrow.compute  # noqa: E402, F401
import pyspark.daemon  # noqa: E402
import pyspark.sql.streaming.python_streaming_source_runner  # noqa: E402
import pyspark.sql.worker.python_streaming_sink_runner  # noqa: E402
import pyspark.sql.worker.write_into_data_source  # noqa: E402
import pyspark.worker  # noqa: E402, F401

import penstock.engines.spark.sink  # noqa: E402
import penstock.engines.spark.source  # noqa: E402, F401

if __name__ == "__main__":
    pa.set_cpu_count(1)
    pyspark.daemon.manager()
