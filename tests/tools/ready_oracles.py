"""What the topics of ready pipelines with state must hold, in SQL over what was produced.

What an operator with state writes depends on how its rows were cut into batches: `batches` says
where each began and ended in the topic that it reads. Everything else follows from the rows that
were seen: the watermark of a batch from all rows before it, late rows and sessions from that. What
must hold whatever the cut, such as that totals only grow, is said besides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.demos import clicks
from penstock.demos.texts import authors, topic_model
from penstock.demos.words import MAX_WORDS

Database = duckdb.DuckDBPyConnection
#: First and end offset of each batch, by operator.
Batches = Mapping[str, Sequence[tuple[int, int]]]
#: Rows shown of each difference.
SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """What is true of a pipeline.

    Topics are tables with `row`, the offset of each row, and `reached`, where a batch must end
    at least to take it.
    """

    #: The topic that is produced, and the operator with state.
    source: str
    operator: str
    #: Tables on the way, in order: by query, or made from what there is already.
    tables: Mapping[str, str | Callable[[Database], pa.Table]]
    #: Two queries that must give the same rows, equally often: expected, found.
    same: Mapping[str, tuple[str, str]]
    #: Queries that must give nothing.
    never: Mapping[str, str] = field(default_factory=dict)


def _counted(reads: str, key: str, writes: str) -> dict[str, tuple[str, str]]:
    """Running totals: the last ones, and those of every batch."""
    return {
        f"last totals in {writes}": (
            f"SELECT {key}, count(*) FROM {reads} GROUP BY ALL",
            f"SELECT {key}, max(n) FROM {writes} GROUP BY ALL",
        ),
        writes: (
            f"""
            SELECT {key}, max(n) FROM (
                SELECT {key}, batch, row_number() OVER (PARTITION BY {key} ORDER BY row) AS n
                FROM {reads} JOIN batches ON reached > first AND reached <= "end"
            ) GROUP BY {key}, batch""",
            f"SELECT {key}, n FROM {writes}",
        ),
    }


def _growing(key: str, writes: str) -> dict[str, str]:
    """Totals of a key grow from row to row: none twice, none back."""
    return {
        f"totals in {writes} that do not grow": f"""
            SELECT {key}, before, n FROM (
                SELECT *, lag(n) OVER (PARTITION BY {key} ORDER BY row) AS before FROM {writes}
            ) WHERE n <= before"""
    }


WORDS = Oracle(
    source="sentences",
    operator="count",
    tables={"listed": "SELECT id, string_split(line, ' ') AS all_words FROM sentences"},
    same={
        "words": (
            f"""
            SELECT id * {MAX_WORDS} + generate_subscripts(all_words, 1) - 1, unnest(all_words)
            FROM listed""",
            "SELECT id, word FROM words",
        ),
        **_counted("words", "word", "counts"),
    },
    never=_growing("word", "counts"),
)

_GAP, _DELAY = int(clicks.GAP_S * 1e6), int(clicks.DELAY_S * 1e6)
_WORTH = ", ".join(map(str, zip(clicks.PAGES, clicks.CENTS, strict=True)))

CLICKS = Oracle(
    source="clicks",
    operator="session",
    tables={
        "came": 'SELECT reached, id, "user" AS who, "at" AS t, cents FROM valued',
        # the watermark of a batch: the latest time before it, less the delay
        "marks": f"""
            SELECT batch, first, "end" AS behind, max(t) - {_DELAY} AS mark
            FROM batches LEFT JOIN came ON reached <= first GROUP BY ALL""",
        "steps": f"""
            SELECT *, coalesce(t - lag(t) OVER (PARTITION BY who ORDER BY t) >= {_GAP}, true)
                AS step
            FROM came ANTI JOIN late USING (id)""",
        "islands": """
            SELECT *, sum(step::int) OVER (PARTITION BY who ORDER BY t, id) AS island FROM steps""",
        "every_session": f"""
            SELECT who, min(t) AS start, max(t) + {_GAP} AS closes, count(*), sum(cents)
            FROM islands GROUP BY who, island""",
    },
    same={
        "valued": (
            f"""
            SELECT id, "user", "at", cents
            FROM clicks JOIN (VALUES {_WORTH}) AS worth(page, cents) USING (page)""",
            "SELECT id, who, t, cents FROM came",
        ),
        "sessions": (
            "SELECT * FROM every_session WHERE closes <= (SELECT max(mark) FROM marks)",
            'SELECT "user", start, "end", n, sum_cents FROM sessions',
        ),
        # late is what would be closed by itself, or touches what is closed
        "late": (
            f"""
            SELECT id, who, t, cents FROM came JOIN marks ON reached > first AND reached <= behind
            WHERE t + {_GAP} <= mark OR EXISTS (
                SELECT * FROM every_session AS closed
                WHERE closed.who = came.who AND t < closes AND closes <= mark)""",
            'SELECT id, "user", "at", cents FROM late',
        ),
    },
)

TWEETS_AUTHORS = Oracle(
    source="tweets",
    operator="count",
    tables={
        "told": r"""
            SELECT id, line->>'user' AS author,
                   regexp_replace(line->>'text', '@\w+ ?| ?https?://\S+', '', 'g') AS text
            FROM tweets""",
        # what a text is about is for the model to say; it is asked once more
        "verdicts": lambda database: _verdicts(database),
        "directory": lambda _: authors.directory(),
        "known": """
            SELECT id, author, coalesce(standing, 'person') AS standing, text
            FROM told LEFT JOIN directory ON author = name""",
    },
    same={
        "parsed": ("SELECT id, author, text FROM told", "SELECT id, author, text FROM parsed"),
        "contents": (
            "SELECT id, author, content, round(sure, 6) FROM told JOIN verdicts USING (text)",
            "SELECT id, author, content, round(sure, 6) FROM contents",
        ),
        "judged": (
            """
            SELECT id, author, standing, content, round(sure, 6)
            FROM known JOIN verdicts USING (text)""",
            "SELECT id, author, standing, content, round(sure, 6) FROM judged",
        ),
        "stored": (
            """
            SELECT id, author, standing, content, round(sure, 6)
            FROM known JOIN verdicts USING (text)""",
            """
            SELECT id, document->>'author', document->>'standing', document->>'content',
                   round((document->>'sure')::double, 6)
            FROM stored""",
        ),
        **_counted("judged", "author", "written"),
    },
    never=_growing("author", "written"),
)

ORACLES = {"words": WORDS, "clicks": CLICKS, "tweets-authors": TWEETS_AUTHORS}


def problems(
    name: str,
    found: Mapping[str, pa.Table],
    batches: Batches,
    reached: Mapping[str, Sequence[int]] = FrozenDict(),
) -> list[str]:
    """Return what is wrong with the topics of a pipeline; nothing should be.

    `reached` is told of topics whose rows are not taken one after the other.
    """
    oracle = ORACLES[name]
    with duckdb.connect(config={"threads": 1}) as database:
        for topic, rows in found.items():
            database.register(topic, _numbered(rows, reached.get(topic)))
        database.register("batches", _table(batches[oracle.operator]))
        for table, made in oracle.tables.items():
            if isinstance(made, str):
                database.execute(f"CREATE TABLE {table} AS {made}")
            else:
                database.register(table, made(database))
        return _look(database, oracle)


def _look(database: Database, oracle: Oracle) -> list[str]:
    ids = f"SELECT id FROM {oracle.source}"
    same = {oracle.source: (f"SELECT range FROM range((SELECT count(*) FROM ({ids})))", ids)}
    wrong = []
    for what, (expected, seen) in {**same, **oracle.same}.items():
        lost = _rows(database, f"({expected}) EXCEPT ALL ({seen})")
        added = _rows(database, f"({seen}) EXCEPT ALL ({expected})")
        if lost or added:
            wrong.append(
                f"{what}: {len(lost)} rows lost {lost[:SHOWN]}, "
                f"{len(added)} too many {added[:SHOWN]}"
            )
    gaps = 'SELECT * FROM (SELECT *, lag("end") OVER (ORDER BY batch) AS b FROM batches)'
    never = {"batches that do not follow each other": f"{gaps} WHERE coalesce(b, 0) <> first"}
    for what, query in {**never, **oracle.never}.items():
        if bad := _rows(database, query):
            wrong.append(f"{what}: {len(bad)} {bad[:SHOWN]}")
    return wrong


def _rows(database: Database, query: str) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = database.execute(f"{query} ORDER BY ALL").fetchall()
    return rows


def _numbered(rows: pa.Table, reached: Sequence[int] | None) -> pa.Table:
    """Rows with their offsets; times are microseconds, which need no time zone."""
    columns = {
        name: column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }
    row = pa.array(range(len(rows)), pa.int64())
    ends = range(1, len(rows) + 1) if reached is None else reached
    return pa.table({**columns, "row": row, "reached": pa.array(ends, pa.int64())})


def _table(batches: Sequence[tuple[int, int]]) -> pa.Table:
    first, end = ([bounds[side] for bounds in batches] for side in (0, 1))
    numbers = [pa.array(each, pa.int64()) for each in (range(len(batches)), first, end)]
    return pa.table(dict(zip(("batch", "first", "end"), numbers, strict=True)))


def _verdicts(database: Database) -> pa.Table:
    """What the model says of each text."""
    texts = [text for (text,) in database.execute("SELECT DISTINCT text FROM told").fetchall()]
    content, sure = topic_model.train_topic_model().judge(pa.array(texts, pa.string()))
    return pa.table({"text": texts, "content": content, "sure": sure})
