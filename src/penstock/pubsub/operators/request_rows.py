"""Requests as rows of their topic."""

from collections.abc import Sequence

import pyarrow as pa

from penstock.pubsub.broker import PublishRequest, Request, SubscribeRequest, UnsubscribeRequest
from penstock.pubsub.operators.topics import REQUESTS, SCHEMAS, RequestKind
from penstock.topics.schema import parse_schema

#: Lane, kind, number, content, payload.
Row = tuple[int, int, int | None, bytes | None, bytes | None]


def make_request_rows(requests: Sequence[Request], first_lane: int) -> pa.Table:
    """Return requests as rows; publications get one lane after the other."""
    rows: list[Row] = [
        (first_lane + place, RequestKind.PUBLISH, None, request.content, request.payload)
        if isinstance(request, PublishRequest)
        else _make_change(request)
        for place, request in enumerate(requests)
    ]
    schema = parse_schema(SCHEMAS[REQUESTS])
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _make_change(request: SubscribeRequest | UnsubscribeRequest) -> Row:
    number = request.number
    if isinstance(request, SubscribeRequest):
        return number, RequestKind.SUBSCRIBE, number, request.content, None
    return number, RequestKind.UNSUBSCRIBE, number, None, None
