"""What micro-batch engines share: batch records, admission, dealing, snapshots. No pyspark."""
