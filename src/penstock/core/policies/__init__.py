"""One published policy per file. A file that defines `POLICY` is found by itself."""
