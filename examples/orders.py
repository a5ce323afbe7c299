"""Which orders are large? penstock run examples/orders.py"""

import pyarrow.compute as pc

from penstock import Pipeline

orders = Pipeline("orders", objective_s=3)
orders.topic("placed", "id long, amount double")
orders.topic("large", "id long, amount double")


@orders.produces("placed")  # test data; in production, @orders.ingest reads files, Kafka, ...
def shop(first_id, due):
    ids = range(first_id, first_id + len(due))
    return {"id": ids, "amount": [float(i % 500) for i in ids]}


@orders.batches(reads="placed", writes="large", max_replicas=4)
def keep_large(batch):
    return batch.filter(pc.greater(batch["amount"], 400))
