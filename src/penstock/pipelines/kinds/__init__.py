"""Operator kinds, one module each: how an operator is declared, checked and tried; no pyspark."""
