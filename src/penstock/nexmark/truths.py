"""Expected results of a query, computed by DuckDB over the same events, and the difference."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.extras import import_optional
from penstock.nexmark.event_order import KINDS
from penstock.nexmark.queries.common import QueryTruth
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """Missing and extra rows, with multiplicity."""

    missing: pa.Table
    extra: pa.Table

    @property
    def is_none(self) -> bool:
        """Whether both have the same rows, in any order."""
        return not len(self.missing) and not len(self.extra)


def events_of(events: int, setting: StreamSettings) -> dict[str, pa.Table]:
    """Return this many events as tables, by kind."""
    return {name: rows(kind, *kind.rows_within(0, events), setting) for name, kind in KINDS.items()}


def true_rows(
    truth: QueryTruth, tables: Mapping[str, pa.Table], closed: int | None = None
) -> pa.Table:
    """Return the expected rows.

    For a query that emits closed windows, `closed` is the watermark of the last batch of
    `truth.closed_by`, in microseconds; None if there was no watermark.
    """
    with _database(tables) as database:
        given = {"closed": closed} if truth.closed_by else None
        return database.sql(truth.sql, params=given).to_arrow_table()


def difference(actual: pa.Table, true: pa.Table) -> RowDifference:
    """Compare rows with multiplicity; `actual` has at least the columns of `true`."""
    with _database({"found": actual.select(true.column_names), "true_rows": true}) as database:
        less = "select * from {} except all select * from {} order by all"
        return RowDifference(
            missing=database.sql(less.format("true_rows", "found")).to_arrow_table(),
            extra=database.sql(less.format("found", "true_rows")).to_arrow_table(),
        )


def check_database() -> None:
    """Raise `InputError` if DuckDB is missing."""
    import_optional("duckdb", "computing the expected rows")


@contextmanager
def _database(tables: Mapping[str, pa.Table]) -> Iterator["DuckDBPyConnection"]:
    """Open an in-memory database with these tables."""
    with import_optional("duckdb", "computing the expected rows").connect() as database:
        for name, table in tables.items():
            database.register(name, _without_zone(table))
        yield database


def _without_zone(table: pa.Table) -> pa.Table:
    """DuckDB needs an extension for time zones; all times are in UTC."""
    return table.cast(
        pa.schema(
            field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
            for field in table.schema
        )
    )
