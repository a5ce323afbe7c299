"""Persons, with all their fields."""

import numpy as np
import pyarrow as pa

from penstock.nexmark.choices import FIRST_NUMBER
from penstock.nexmark.event_order import last_person
from penstock.nexmark.random_text import extras, words
from penstock.nexmark.settings import StreamSettings, timestamps
from penstock.nexmark.splitmix import Draws, Ints
from penstock.nexmark.vocabulary import CITIES, FIRST_NAMES, LAST_NAMES, STATES
from penstock.pipelines.text_columns import choose, join, pc

#: Bytes of a person as it should be on average, and of its id.
_GOAL, _ID = 200, 8


def persons(ids: Ints, setting: StreamSettings) -> pa.Table:
    """Return the persons of these events."""
    draws = Draws(ids)
    # in the order in which the reference draws them
    name = join(_chosen(draws, FIRST_NAMES), " ", _chosen(draws, LAST_NAMES))
    email = join(words(draws, 7), "@", words(draws, 5), ".com")
    card = pc.binary_join_element_wise(*(_four_digits(draws) for _ in range(4)), " ")
    city, state = _chosen(draws, CITIES), _chosen(draws, STATES)
    held = _ID + sum(_lengths(text) for text in (name, email, card, city, state))
    return pa.table(
        {
            "id": FIRST_NUMBER + last_person(ids),
            "name": name,
            "emailAddress": email,
            "creditCard": card,
            "city": city,
            "state": state,
            "dateTime": timestamps(setting.times_ms(ids)),
            "extra": extras(draws, setting.the_tables().pool, _GOAL, held),
        }
    )


def _chosen(draws: Draws, choices: tuple[str, ...]) -> pa.Array:
    return choose(choices, draws.below(len(choices)))


def _four_digits(draws: Draws) -> pa.Array:
    return pc.ascii_lpad(pc.cast(pa.array(draws.below(10_000)), pa.string()), 4, "0")


def _lengths(texts: pa.Array) -> Ints:
    lengths: Ints = pc.binary_length(texts).to_numpy().astype(np.int64)
    return lengths
