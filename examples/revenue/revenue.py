"""Revenue per customer and minute: JSON files in, Parquet and a database out.

    python examples/revenue/make_orders.py shop/in              # files, as a shop would write them
    penstock run examples/revenue/revenue.py --set data=shop --policy ds2 --out runs/revenue
    penstock status runs/revenue

`docs/production.md` tells the story.
"""

import json
import sqlite3
import time
from pathlib import Path

import pyarrow as pa

from penstock import Pipeline, windows

ORDER = "id long, ts timestamp, customer string, amount double"
REGIONS = {"ann": "north", "bob": "south", "cid": "north", "dee": "west", "eve": "south"}


def build(data: str = "shop", lookup_s: float = 0.01, max_replicas: int = 8) -> Pipeline:
    """Declare it over DATA/in; results go to DATA/revenue (Parquet) and DATA/revenue.db."""
    home = Path(data).resolve()
    shop = Pipeline("revenue", objective_s=10, summary="revenue per customer and minute")
    shop.topic("lines", "value string")
    shop.topic("orders", ORDER)
    shop.topic("enriched", f"{ORDER}, region string")

    @shop.ingest(writes="lines")
    def files(spark):
        return spark.readStream.option("maxFilesPerTrigger", 10).text(str(home / "in"))

    @shop.batches(reads="lines", writes="orders", max_replicas=2, on_error="dead-letter")
    def parse(batch):
        rows = [json.loads(line) for line in batch["value"].to_pylist()]
        times = pa.array([row["ts"] for row in rows]).cast(pa.timestamp("us", "UTC"))
        return {
            "id": [row["id"] for row in rows],
            "ts": times,
            "customer": [row["customer"] for row in rows],
            "amount": [float(row["amount"]) for row in rows],
        }

    @shop.batches(reads="orders", writes="enriched", max_replicas=max_replicas, chunk_rows=50)
    def enrich(batch):
        time.sleep(lookup_s * batch.num_rows)  # stands for a call to a slow service
        regions = [REGIONS.get(customer) for customer in batch["customer"].to_pylist()]
        return batch.append_column("region", pa.array(regions, pa.string()))

    revenue = windows(by=("customer", "region"), size_s=60, sums="amount", time="ts")
    shop.sliced("enriched", "revenue", name="minutes", delay_s=5, slices=16, late_to="late")(
        revenue
    )

    @shop.egress(reads="revenue")
    def parquet(df):
        return df.writeStream.format("parquet").option("path", str(home / "revenue"))

    @shop.egress(reads="revenue")
    def database(df):
        return df.writeStream.foreachBatch(lambda rows, batch: store(home, rows, batch))

    return shop


def store(home, rows, batch):
    """Write a batch; if it comes again after a kill, it replaces what it wrote before."""
    values = [
        (batch, row.customer, row.region, row.start.isoformat(), row.n, row.sum_amount)
        for row in rows.collect()
    ]
    with sqlite3.connect(home / "revenue.db") as connection:
        connection.execute(
            "create table if not exists revenue"
            " (batch int, customer text, region text, start text, n int, amount real)"
        )
        connection.execute("delete from revenue where batch = ?", (batch,))
        connection.executemany("insert into revenue values (?, ?, ?, ?, ?, ?)", values)


PIPELINE = build()
