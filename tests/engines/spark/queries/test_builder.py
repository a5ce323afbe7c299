"""How operators become queries, as far as that needs no Spark."""

import pytest
from pyspark.sql import types

from penstock.engines.spark.queries.builder import _has_small_rows

SMALL = [
    types.LongType(),
    types.DoubleType(),
    types.DecimalType(9, 2),
    types.BooleanType(),
    types.DateType(),
    types.TimestampType(),
]


@pytest.mark.parametrize(
    "long",
    [
        types.StringType(),
        types.BinaryType(),
        types.ArrayType(types.IntegerType()),
        types.StructType([types.StructField("x", types.IntegerType())]),
        types.VariantType(),
    ],
)
def test_only_rows_has_small_rows_go_without_a_look_at_each(long: types.DataType) -> None:
    small = types.StructType([types.StructField(f"c{i}", t) for i, t in enumerate(SMALL)])
    assert _has_small_rows(small)
    assert not _has_small_rows(small.add("long", long))
