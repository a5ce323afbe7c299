"""A pipeline from a Kafka topic to another one; the environment names both."""

import os

import pyarrow.compute as pc

import penstock
from penstock import Pipeline

ORDERS = "id long, amount double, part int"
SOURCE, TARGET = os.environ.get("KAFKA_IN", ""), os.environ.get("KAFKA_OUT", "")
#: User and password; the password is a reference to the environment.
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "penstock",
    "sasl.password": "${env:KAFKA_PASSWORD}",
}
#: A file with the same, and the password itself.
FILE = os.environ.get("KAFKA_PROPERTIES", "")

shop = Pipeline("shop", objective_s=5)
shop.topic("raw", ORDERS)
shop.topic("kept", ORDERS)


@shop.ingest(writes="raw")
def orders(spark):
    return penstock.kafka.read(spark, SOURCE, schema=ORDERS, max_rows=2000, tasks=4, settings=LOGIN)


@shop.batches(reads="raw", writes="kept", max_replicas=3)
def keep_even(batch):
    return batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 1), 0))


@shop.egress(reads="kept", max_replicas=3)
def publish(df):
    return penstock.kafka.write(df.drop("_event"), TARGET, key="id", properties=FILE)
