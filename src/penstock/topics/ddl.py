"""Parses and prints column types in Spark's DDL: `id long, tags array<string>`."""

import re
from typing import NoReturn

import pyarrow as pa

from penstock.errors import InputError, nearest

TIMESTAMP = pa.timestamp("us", tz="UTC")

_WORDS = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
}
_ALSO = {
    "tinyint": "byte",
    "smallint": "short",
    "integer": "int",
    "bigint": "long",
    "real": "float",
}
_NESTED = ("array", "map", "struct", "decimal")
_TOKEN = re.compile(r"\s*(`[^`]+`|\w+|[<>(),:])")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


def parse_fields(text: str) -> list[pa.Field]:
    """Parse columns separated by commas.

    >>> parse_fields("id long not null, tags array<string>")
    [pyarrow.Field<id: int64 not null>, pyarrow.Field<tags: list<element: string>>]
    """
    parser = _DdlParser(text)
    fields = parser.fields(end="")
    if not fields:
        parser.refuse("has no columns")
    return fields


def type_text(kind: pa.DataType) -> str:
    """Return a type in Spark's DDL, or its Arrow name if Spark has none.

    >>> type_text(pa.map_(pa.string(), pa.decimal128(10, 2))), type_text(pa.uint8())
    ('map<string, decimal(10,2)>', 'uint8')
    """
    for word, known in _WORDS.items():
        if kind == known:
            return word
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{kind_text(kind.value_field)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {kind_text(kind.item_field)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(field_text(field, ':') for field in kind)}>"
    return str(kind)


def kind_text(field: pa.Field) -> str:
    """Return the type of a column and whether it is nullable."""
    return type_text(field.type) + ("" if field.nullable else " not null")


def field_text(field: pa.Field, between: str = "") -> str:
    """Return a column as DDL: name, type, whether it is nullable."""
    name = field.name if _PLAIN.fullmatch(field.name) else f"`{field.name}`"
    return f"{name}{between} {kind_text(field)}"


class _DdlParser:
    """A recursive-descent parser with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                self.refuse(f"cannot be read from {text[place:].strip()[:20]!r} on")
            self._tokens.append(match[1])
            place = match.end()
        self._tokens.append("")
        self._next = 0

    def fields(self, end: str) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while self._tokens[self._next] != end:
            if fields:
                self._expect(",")
            name = self._name()
            if name in {field.name for field in fields}:
                self.refuse(f"has column {name!r} twice")
            self._skip(":")
            kind = self._type()
            fields.append(pa.field(name, kind, nullable=self._nullable()))
        return fields

    def refuse(self, problem: str, hint: str = "") -> NoReturn:
        hint = hint or "write columns as in: id long, taken timestamp, png binary"
        raise InputError("schema", f"{problem}: {self._text!r}", hint)

    def _type(self) -> pa.DataType:
        word = self._take().lower()
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word == "array":
            self._expect("<")
            kind = pa.list_(pa.field("element", self._type(), nullable=self._nullable()))
        elif word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            kind = pa.map_(key, pa.field("value", self._type(), nullable=self._nullable()))
        elif word == "struct":
            self._expect("<")
            kind = pa.struct(self.fields(end=">"))
        elif (name := _ALSO.get(word, word)) in _WORDS:
            return _WORDS[name]
        else:
            self.refuse(f"has no type {word!r}", nearest(word, [*_WORDS, *_ALSO, *_NESTED]))
        self._expect(">")
        return kind

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._skip("("):
            precision = self._number()
            scale = self._number() if self._skip(",") else 0
            self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            self.refuse(f"has decimal({precision},{scale}); the most is 38 digits in all")
        return pa.decimal128(precision, scale)

    def _nullable(self) -> bool:
        if self._tokens[self._next].lower() != "not":
            return True
        self._take()
        if self._take().lower() != "null":
            self.refuse("has 'not' without 'null'")
        return False

    def _name(self) -> str:
        token = self._take()
        if token in {"", *"<>(),:"}:
            self.refuse(f"has {token!r} where a column's name should be")
        return token.strip("`")

    def _number(self) -> int:
        token = self._take()
        if not token.isdecimal():
            self.refuse(f"has {token!r} where a number should be")
        return int(token)

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _skip(self, token: str) -> bool:
        is_next = self._tokens[self._next] == token
        self._next += is_next
        return is_next

    def _expect(self, token: str) -> None:
        taken = self._take()
        if taken != token:
            self.refuse(f"has {taken!r} where {token!r} should be")
