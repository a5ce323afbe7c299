"""What every topic of the chaos pipeline must hold, said again in SQL and computed by DuckDB."""

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

#: By topic, from the numbers as they came in: `ids` with the offset of each.
EXPECTED = {
    "numbers": """
        SELECT range AS id, 'n' || (range % 13) AS text
        FROM range((SELECT max(id) + 1 FROM ids))""",
    "scale-errors": """
        SELECT 'numbers' AS topic, "offset", 'ValueError: cannot scale ' || id AS error,
               '{"id": ' || id || ', "text": "n' || (id % 13) || '"}' AS row
        FROM ids WHERE id % 97 = 96""",
    "scaled": """
        SELECT id, 7 * id + 3 AS value, id % 37 AS bucket
        FROM ids WHERE id % 97 <> 96""",
    # a key keeps its order, whatever batches and replicas there are
    "sums": """
        SELECT id, id % 37 AS bucket, count(*) OVER so_far AS n,
               (sum(7 * id + 3) OVER so_far)::BIGINT AS total
        FROM ids WHERE id % 97 <> 96
        WINDOW so_far AS (PARTITION BY id % 37 ORDER BY "offset")""",
    # the newest number of the batches before the last one has closed the windows
    "windows": """
        SELECT to_timestamp(id // 50 * 50) AS start, id % 37 AS bucket, count(*) AS n,
               sum(id)::BIGINT AS total
        FROM ids WHERE id // 50 * 50 + 50 <= (SELECT id FROM last_batch) GROUP BY ALL""",
    # 7 n + 3 is odd where n is even
    "odds": """
        SELECT id, -1 AS part, 7 * id + 3 AS value, 'odd' AS label
        FROM ids WHERE id % 97 <> 96 AND id % 2 = 0""",
    "parts": """
        SELECT id, part, 70 * id + 30 + part AS value
        FROM ids, (VALUES (0), (1), (2)) AS t(part) WHERE id % 97 <> 96 AND part < id % 4""",
    "labelled": """
        SELECT id, part, 70 * id + 29 + part AS value,
               'part ' || part || ' of ' || (id % 4) AS label
        FROM ids, (VALUES (0), (1), (2)) AS t(part) WHERE id % 97 <> 96 AND part < id % 4""",
    "everything": """
        SELECT id, -1 AS part, -(7 * id + 3) AS value, 'odd' AS label
        FROM ids WHERE id % 97 <> 96 AND id % 2 = 0
        UNION ALL
        SELECT id, part, -(70 * id + 29 + part), 'part ' || part || ' of ' || (id % 4)
        FROM ids, (VALUES (0), (1), (2)) AS t(part) WHERE id % 97 <> 96 AND part < id % 4""",
}
#: Rows shown of each difference.
SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Rows that a topic should hold and does not, or holds too often, or should not."""

    topic: str
    lost: int
    doubled: int
    first_lost: list[tuple[object, ...]]
    first_doubled: list[tuple[object, ...]]

    def __str__(self) -> str:
        return (
            f"{self.topic}: {self.lost} rows lost {self.first_lost}, "
            f"{self.doubled} too many {self.first_doubled}"
        )


def differences(found: Mapping[str, pa.Table], last_batch: int) -> list[Difference]:
    """Compare every topic as a multiset of rows with what the numbers make of it.

    The last batch of the windows began with the row of this offset. The numbers themselves
    must be 0 to n - 1.
    """
    numbers = found["numbers"]
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        offsets = pa.array(range(len(numbers)), pa.int64())
        database.register("ids", pa.table({"id": numbers["id"], "offset": offsets}))
        database.execute(
            f'CREATE VIEW last_batch AS SELECT max(id) AS id FROM ids WHERE "offset" < {last_batch}'
        )
        each = [_difference(database, topic, found[topic]) for topic in EXPECTED]
    return [difference for difference in each if difference.lost or difference.doubled]


def _difference(database: duckdb.DuckDBPyConnection, topic: str, found: pa.Table) -> Difference:
    database.register("found", found)
    expected, seen = f"({EXPECTED[topic]})", "(SELECT * FROM found)"
    lost, first_lost = _minus(database, expected, seen)
    doubled, first_doubled = _minus(database, seen, expected)
    database.unregister("found")
    return Difference(
        topic=topic, lost=lost, doubled=doubled, first_lost=first_lost, first_doubled=first_doubled
    )


def _minus(
    database: duckdb.DuckDBPyConnection, left: str, right: str
) -> tuple[int, list[tuple[object, ...]]]:
    """Rows of one that the other has not, each as often as it has them more."""
    database.execute(f"CREATE OR REPLACE TEMP TABLE rest AS {left} EXCEPT ALL {right}")
    (count,) = database.execute("SELECT count(*) FROM rest").fetchall()[0]
    return count, database.execute(f"SELECT * FROM rest ORDER BY ALL LIMIT {SHOWN}").fetchall()
