"""A first pipeline: which orders are large? Run it: penstock run examples/orders.py"""

import pyarrow as pa
import pyarrow.compute as pc

from penstock import Pipeline

orders = Pipeline("orders", objective_s=3, summary="which orders are large?")
orders.topic("placed", "id long, amount double")
orders.topic("large", "id long, amount double")


@orders.produces("placed")  # what comes in; another process or an ingest operator can do that, too
def shop(first_id, due):
    ids = range(first_id, first_id + len(due))
    return {"id": ids, "amount": [float(i % 500) for i in ids]}


@orders.batches(reads="placed", writes="large", max_replicas=4)
def keep_large(batch: pa.RecordBatch):
    return batch.filter(pc.greater(batch["amount"], 400))
