"""The functions of the pipeline: from a line of text to counts, one function per operator.

Records are orders of a shop, one line each. Every function takes the fields of a record and
returns them with its own ones added; none keeps state, as the protocol requires.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

Fields = dict[str, Any]
Function = Callable[[Fields], Fields]

_REGIONS = {"Rennes": "west", "Lyon": "east", "Lille": "north", "Nantes": "west", "Nice": "south"}
_RATES = {"EUR": 1.0, "CHF": 1.05, "USD": 0.92}
_LARGE = 500.0


def write_line(sequence: int, seed: int) -> str:
    """Return the line of text of one record; the same for the same numbers.

    >>> write_line(7, seed=1)
    '7;Nice;303.96;USD'
    """
    random = Random(f"{seed}/{sequence}")
    city, currency = random.choice(list(_REGIONS)), random.choice(list(_RATES))
    return f"{sequence};{city};{random.uniform(1, 1000):.2f};{currency}"


def parse(fields: Fields) -> Fields:
    """Split the line of text."""
    order, city, amount, currency = fields["line"].split(";")
    return {"order": int(order), "city": city, "amount": float(amount), "currency": currency}


def enrich(fields: Fields) -> Fields:
    """Add the region of the city."""
    return {**fields, "region": _REGIONS[fields["city"]]}


def convert(fields: Fields) -> Fields:
    """Add the amount in euros."""
    return {**fields, "euros": round(fields["amount"] * _RATES[fields["currency"]], 2)}


def classify(fields: Fields) -> Fields:
    """Say whether the order is large."""
    amount: float = fields.get("euros") or fields["amount"]
    return {**fields, "is_large": amount >= _LARGE}


def count(fields: Fields) -> Fields:
    """Return what the order adds to the counts; the sink adds them up."""
    key = fields.get("region") or fields["city"]
    return {"counts": {key: 1, "large": int(fields.get("is_large", False))}}


#: The operators of pipelines of one, two, ... operators, in the order of the path of a record.
_PIPELINES: tuple[tuple[Function, ...], ...] = (
    (parse,),
    (parse, count),
    (parse, enrich, count),
    (parse, enrich, classify, count),
    (parse, enrich, convert, classify, count),
)
MAX_OPERATORS = len(_PIPELINES)


def build_pipeline(operators: int) -> dict[str, Function]:
    """Return the functions by the names of their operators, first to last.

    >>> list(build_pipeline(3))
    ['parse', 'enrich', 'count']
    """
    return {function.__name__: function for function in _PIPELINES[operators - 1]}


def add_counts(totals: dict[str, int], fields: Fields) -> None:
    """Add what one record counts; a record without counts is one of its city."""
    for key, number in fields.get("counts", {fields.get("city", ""): 1}).items():
        totals[key] = totals.get(key, 0) + number


def count_directly(operators: int, sequences: Iterable[int], seed: int) -> dict[str, int]:
    """Return the counts without processes: every record through every function, one by one."""
    totals: dict[str, int] = {}
    functions = build_pipeline(operators).values()
    for sequence in sequences:
        fields: Fields = {"line": write_line(sequence, seed)}
        for function in functions:
            fields = function(fields)
        add_counts(totals, fields)
    return totals
