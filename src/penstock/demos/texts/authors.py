"""Who writes: names made by number, and a directory of those who are more than a person."""

import numpy as np
import pyarrow as pa

from penstock.pipelines import record_draws as draws
from penstock.pipelines.text_columns import choose, join, pc, word_list

_FIRST = word_list(
    "amber bold calm dusty early faint green hasty icy jolly keen lucky misty noble odd"
)
_SECOND = word_list("otter heron maple river comet willow badger lantern pebble falcon")
#: How many people write.
AUTHORS = 6000
#: What the directory tells apart; whoever is not in it is a person.
STANDINGS = ("press", "office", "robot")
PERSON = "person"
#: One author of so many is in the directory under each standing.
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
    """Return the number of the author of each record: a few write much, most little."""
    return (AUTHORS * draws.uniform(ids, "author") ** 2).astype(np.intp)


def directory() -> pa.Table:
    """Return the directory: name and standing of every author who is in it."""
    numbers = np.arange(AUTHORS)
    listed = numbers[numbers % _ONE_OF < len(STANDINGS)]
    return pa.table({"name": names(listed), "standing": choose(STANDINGS, listed % _ONE_OF)})


def standing(listed: pa.Table, found: pa.Array) -> pa.Array:
    """Look authors up by name: their standing, or person."""
    where = pc.index_in(found, value_set=listed["name"])
    return pc.fill_null(listed["standing"].combine_chunks().take(where), PERSON)
