"""The topics between the operators: names and columns, and lists of numbers as bytes.

requests -> access -> subscriptions -> match -> partial -> exit -> notices
                   -> publications ----^     -> acks
                   -> refusals
"""

from enum import IntEnum

import numpy as np
import pyarrow as pa

from penstock.pubsub.arrays import Numbers

REQUESTS, REFUSALS = "requests", "refusals"
SUBSCRIPTIONS, PUBLICATIONS = "subscriptions", "publications"
PARTIAL, ACKS, NOTICES = "partial", "acks", "notices"

#: Subscription numbers are below this.
MAX_NUMBERS = 2**32


class RequestKind(IntEnum):
    """What a request asks for."""

    SUBSCRIBE = 0
    UNSUBSCRIBE = 1
    PUBLISH = 2


#: Columns whose content does not depend on the space. Lists of subscription numbers are bytes:
#: four for each number, little-endian.
SCHEMAS = {
    # the lane spreads requests over access points; all changes of a subscription share one
    REQUESTS: "lane long not null, kind byte not null, number long, content binary, payload binary",
    REFUSALS: "kind byte not null, number long, problem string not null",
    SUBSCRIPTIONS: "number long not null, is_active boolean not null, content binary",
    PARTIAL: "publication long not null, slice int not null, numbers binary not null,"
    " payload binary",
    ACKS: "number long not null, is_active boolean not null, publication long not null",
    NOTICES: "publication long not null, numbers binary not null, payload binary not null",
}


def publication_columns(attributes: int, is_encrypted: bool) -> str:
    """Return the columns of publications: what the matcher compares, and the payload."""
    if is_encrypted:
        return "payload binary not null, vector binary not null"
    values = [
        f"code_{i} byte not null, number_{i} double not null, text_{i} binary"
        for i in range(attributes)
    ]
    return ", ".join(["payload binary not null", *values])


def pack_lists(lists: pa.ListArray) -> pa.BinaryArray:
    """Return lists of numbers as bytes, without a copy of the numbers.

    >>> pack_lists(pa.array([[1, 2], []], pa.list_(pa.uint32()))).to_pylist()
    [b'\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00', b'']
    """
    offsets = lists.offsets.to_numpy().astype(np.int32) * np.int32(4)
    values = lists.values
    start = 4 * values.offset
    data = values.buffers()[1] or pa.py_buffer(b"")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lists), [None, pa.py_buffer(offsets), data.slice(start)]
    )


def unpack_numbers(data: bytes) -> Numbers:
    """Return the numbers of one list."""
    return np.frombuffer(data, "<u4")
