"""Authors of messages: names by number, and a directory of those who are not private persons."""

import numpy as np
import pyarrow as pa

from penstock.pipelines import record_draws as draws
from penstock.pipelines.text_columns import choose, join, pc, word_list

_FIRST = word_list(
    "amber bold calm dusty early faint green hasty icy jolly keen lucky misty noble odd"
)
_SECOND = word_list("otter heron maple river comet willow badger lantern pebble falcon")
#: The number of authors.
AUTHORS = 6000
#: The standings in the directory; all other authors are persons.
STANDINGS = ("press", "office", "robot")
PERSON = "person"
#: One author in this many has each standing.
_ONE_OF = 40


def names(numbers: draws.Indices) -> pa.Array:
    """Return the name of each author.

    >>> names(np.array([0, 17, 5999])).to_pylist()
    ['amber_otter_0', 'calm_heron_0', 'odd_falcon_39']
    """
    first, rest = choose(_FIRST, numbers % len(_FIRST)), numbers // len(_FIRST)
    second, last = choose(_SECOND, rest % len(_SECOND)), rest // len(_SECOND)
    return join(first, "_", second, "_", pc.cast(pa.array(last), pa.string()))


def writers(ids: draws.Ids) -> draws.Indices:
    """Return the author of each record; a few authors write much, most little."""
    return (AUTHORS * draws.uniform(ids, "author") ** 2).astype(np.intp)


def directory() -> pa.Table:
    """Return the directory: names and standings."""
    numbers = np.arange(AUTHORS)
    listed = numbers[numbers % _ONE_OF < len(STANDINGS)]
    return pa.table({"name": names(listed), "standing": choose(STANDINGS, listed % _ONE_OF)})


def standing(listed: pa.Table, names: pa.Array) -> pa.Array:
    """Return the standing of each author by name; `person` if not listed."""
    where = pc.index_in(names, value_set=listed["name"])
    return pc.fill_null(listed["standing"].combine_chunks().take(where), PERSON)
