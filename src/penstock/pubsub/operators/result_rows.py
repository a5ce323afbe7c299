"""Rows of acks, refusals and notices as the values that a server reads."""

import pyarrow as pa

from penstock.pubsub.broker import Ack, Notice, Refusal
from penstock.pubsub.operators.topics import unpack_numbers


def make_acks(rows: pa.RecordBatch) -> list[Ack]:
    """Return acks in the order of rows: all changes of a subscription are in their order."""
    columns = (rows[name].to_pylist() for name in ("number", "is_active", "publication"))
    return [
        Ack(number=number, is_active=is_active, publication=publication)
        for number, is_active, publication in zip(*columns, strict=True)
    ]


def make_refusals(rows: pa.RecordBatch) -> list[Refusal]:
    """Return refusals in the order of rows."""
    columns = (rows[name].to_pylist() for name in ("number", "problem"))
    return [Refusal(number=number, problem=text) for number, text in zip(*columns, strict=True)]


def make_notices(rows: pa.RecordBatch) -> list[Notice]:
    """Return notices in the order of publications."""
    columns = (rows[name].to_pylist() for name in ("publication", "numbers", "payload"))
    notices = [
        Notice(
            publication=publication,
            subscriptions=tuple(unpack_numbers(numbers).tolist()),
            payload=payload,
        )
        for publication, numbers, payload in zip(*columns, strict=True)
    ]
    return sorted(notices, key=lambda notice: notice.publication)
