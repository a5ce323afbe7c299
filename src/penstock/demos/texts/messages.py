"""Messages: short public messages made by number, in four languages, news and opinions.

What a message is about is drawn first (`truth`), then the words for it. Some openings, endings
and things mislead, as they do in life, so whoever judges messages by their words can be wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.demos.texts import authors, phrases
from penstock.demos.texts.json_lines import from_json, to_json
from penstock.pipelines import record_draws as draws
from penstock.pipelines.text_columns import choose, join, pc

KINDS = ("news", "opinion")
_LANGUAGE_SHARES = (0.8, 0.1, 0.06, 0.04)
_FEELING_SHARES = (0.4, 0.4, 0.2)
#: So many messages speak of a thing that belongs to another subject.
_SLIPS = 0.12
_TAGGED, _LINKED, _ADDRESSED = 0.3, 0.2, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTruth:
    """What each message is meant to be, as indices into LANGUAGES, KINDS, SUBJECTS and FEELINGS."""

    language: draws.Indices
    kind: draws.Indices
    subject: draws.Indices
    #: What it feels for its thing; news feel nothing, whatever is drawn here.
    feeling: draws.Indices


def truth(ids: draws.Ids) -> MessageTruth:
    """Draw what the message of each number is meant to be."""
    return MessageTruth(
        language=draws.pick_by_share(ids, "language", _LANGUAGE_SHARES),
        kind=draws.pick(ids, "kind", len(KINDS)),
        subject=draws.pick(ids, "subject", len(phrases.SUBJECTS)),
        feeling=draws.pick_by_share(ids, "feeling", _FEELING_SHARES),
    )


def texts(ids: draws.Ids) -> pa.Array:
    """Return the text of each message."""
    meant = truth(ids)
    foreign, news = meant.language > 0, meant.kind == KINDS.index("news")
    subjects, feelings = len(phrases.SUBJECTS), len(phrases.OPINION_ENDINGS)
    slips = draws.uniform(ids, "slip") < _SLIPS
    spoken_of = (meant.subject + slips * draws.pick(ids, "other subject", subjects)) % subjects
    opening = np.where(foreign, 1 + meant.language, meant.kind)
    ending = np.where(news, meant.subject, subjects + meant.feeling)
    ending = np.where(foreign, subjects + feelings - 1 + meant.language, ending)
    return join(
        _sometimes(ids, _ADDRESSED, "addressed", "@", _author(ids, "addressee"), " "),
        _phrase(ids, "opening", _OPENINGS, opening),
        " ",
        _phrase(ids, "thing", _THINGS, meant.language * subjects + spoken_of),
        " ",
        _phrase(ids, "ending", _ENDINGS, ending),
        _sometimes(ids, _TAGGED, "tagged", " #", choose(phrases.SUBJECTS, meant.subject)),
        _sometimes(ids, _LINKED, "linked", " https://news.example/", _number(ids, "link")),
    )


def tweets(first: int, due: pa.Array) -> pa.Table:
    """Return the rows of raw tweets, as a public interface would hand them out."""
    ids = first + np.arange(len(due))
    numbers = pa.array(ids)
    author = authors.names(authors.writers(ids))
    return pa.table(
        {"id": numbers, "line": to_json({"id": numbers, "user": author, "text": texts(ids)})}
    )


def parse(tweets: pa.RecordBatch) -> pa.RecordBatch:
    """Return who wrote each tweet, and the text without links and without those it is meant for."""
    rows = from_json(tweets.column("line"), _FIELDS)
    text = pc.replace_substring_regex(rows["text"], r"@\w+ ?| ?https?://\S+", "")
    return pa.record_batch({"id": tweets.column("id"), "author": rows["user"], "text": text})


_FIELDS = pa.schema({"user": pa.string(), "text": pa.string()})
_OPENINGS = (phrases.NEWS_OPENINGS, phrases.OPINION_OPENINGS, *phrases.FOREIGN_OPENINGS)
_THINGS = tuple(things for language in phrases.THINGS for things in language)
_ENDINGS = (*phrases.NEWS_ENDINGS, *phrases.OPINION_ENDINGS, *phrases.FOREIGN_ENDINGS)


def _phrase(
    ids: draws.Ids, stream: str, groups: Sequence[Sequence[str]], group: draws.Indices
) -> pa.Array:
    """Choose one phrase for each record out of the group that it belongs to."""
    sizes = np.array([len(phrases) for phrases in groups])
    starts = np.cumsum(sizes) - sizes
    within = (draws.uniform(ids, stream) * sizes[group]).astype(np.intp)
    return choose([phrase for phrases in groups for phrase in phrases], starts[group] + within)


def _sometimes(ids: draws.Ids, share: float, stream: str, *parts: pa.Array | str) -> pa.Array:
    return pc.if_else(pa.array(draws.uniform(ids, stream) < share), join(*parts), "")


def _author(ids: draws.Ids, stream: str) -> pa.Array:
    return authors.names(draws.pick(ids, stream, authors.AUTHORS))


def _number(ids: draws.Ids, stream: str) -> pa.Array:
    return pc.cast(pa.array(draws.pick(ids, stream, 1_000_000)), pa.string())
