"""Benchmarks of publish/subscribe: kernels, the whole service on Spark, migrations."""
