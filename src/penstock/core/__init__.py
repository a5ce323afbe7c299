"""DECIDES: values, policies and guards. No clock, no file, no engine, no `pyspark`."""
