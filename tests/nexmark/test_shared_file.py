"""Field by field what the reference's own classes made, if their file is there."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

from penstock.nexmark.event_order import KINDS, EventKind
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import rows
from penstock.nexmark.vocabulary import (
    CHANNELS,
    HOT_CHANNELS,
    OTHER_CHANNELS,
    Tables,
    channel_ids,
)
from penstock.topics.schema import parse_schema

EVENTS = 20_000
SHARED = Path(__file__).parents[3] / "shared" / "data"
EVENT_FILE, TABLE_FILE = SHARED / "nexmark_20k.csv.gz", SHARED / "nexmark_tables.tsv.gz"
pytestmark = pytest.mark.skipif(
    not (EVENT_FILE.is_file() and TABLE_FILE.is_file()),
    reason=f"{EVENT_FILE.name} and {TABLE_FILE.name} are not in ../shared/data",
)
#: Columns that are not called after the kind's letter and the field.
NAMES = {"dateTime": "ts_ms", "emailAddress": "p_email", "expires": "a_expires_ms"}


def read(file: Path, delimiter: str) -> pa.Table:
    """Read a file in which nothing is quoted and every text is what it is."""
    parsing = pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=False, escape_char=False)
    reading = pyarrow.csv.ReadOptions(block_size=1 << 24)
    return pyarrow.csv.read_csv(file, reading, parsing)


@pytest.fixture(scope="module")
def shared_tables() -> Tables:
    table = read(TABLE_FILE, "\t")
    urls = table.filter(pc.field("kind") != "extra_pool")
    assert urls["key"].to_pylist() == CHANNELS.to_pylist()
    pool = table.filter(pc.field("kind") == "extra_pool")["value"][0].as_py()
    return Tables(urls["value"].combine_chunks(), np.frombuffer(pool.encode(), np.uint8))


@pytest.fixture(scope="module")
def shared_events() -> pa.Table:
    return read(EVENT_FILE, ",")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_field_of_every_event(
    kind: EventKind, shared_events: pa.Table, shared_tables: Tables
) -> None:
    theirs = shared_events.filter(pc.field("event_type") == list(KINDS.values()).index(kind))
    ours = rows(kind, *kind.rows_within(0, EVENTS), StreamSettings(tables=shared_tables))
    assert kind.ids(0, len(ours)).tolist() == theirs["event_id"].to_pylist()
    for name in parse_schema(kind.schema).names:
        column = theirs[NAMES.get(name, f"{kind.name[0]}_{name.lower()}")]
        mine = ours[name]
        if pa.types.is_timestamp(mine.type):
            mine = pc.divide(mine.cast(pa.int64()), 1000)
        assert mine.to_pylist() == column.to_pylist(), name


def test_ids_in_urls(shared_tables: Tables) -> None:
    ids = channel_ids(np.arange(OTHER_CHANNELS)).tolist()
    urls = shared_tables.urls.to_pylist()[len(HOT_CHANNELS) :]
    named = [(url, own) for url, own in zip(urls, ids, strict=True) if "channel_id" in url]
    assert len(named) > 8500
    assert all(url.endswith(f"&channel_id={own}") for url, own in named)
