"""Splits a predicate into tokens: words, numbers, texts and signs, each with its place."""

import re
from dataclasses import dataclass
from enum import Enum

from penstock.pubsub.language.predicate_error import PredicateError

#: A predicate may have this many characters.
MAX_LENGTH = 4096

KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "EXISTS", "TRUE", "FALSE"})
_PATTERN = re.compile(
    r"""\s*(?:
    (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<name>[^\W\d]\w*(?:\.\w+)*)
    |(?P<sign><=|>=|<>|!=|[=<>(),])
    )""",
    re.VERBOSE,
)


class TokenKind(Enum):
    """What a token is."""

    KEYWORD = "keyword"
    NAME = "attribute"
    NUMBER = "number"
    TEXT = "text"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its value, where it begins."""

    kind: TokenKind
    #: Keywords in capitals; texts without quotes; numbers as written.
    value: str
    position: int

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end"
        return f"'{self.value}'" if self.kind is not TokenKind.TEXT else f"the text '{self.value}'"


def split_tokens(text: str) -> list[Token]:
    """Split a predicate; the last token is the end.

    >>> [token.value for token in split_tokens("price >= 2.5 and Name = 'O''Hara'")]
    ['price', '>=', '2.5', 'AND', 'Name', '=', "O'Hara", '']
    """
    if len(text) > MAX_LENGTH:
        problem = f"has {len(text):,} characters; at most {MAX_LENGTH:,} are allowed"
        raise PredicateError(text, MAX_LENGTH, problem)
    tokens, place = [], 0
    end = len(text.rstrip())
    while place < end:
        match = _PATTERN.match(text, place)
        if match is None:
            raise _unreadable(text, place)
        tokens.append(_make_token(match))
        place = match.end()
    return [*tokens, Token(TokenKind.END, "", end)]


def _make_token(match: re.Match[str]) -> Token:
    name = str(match.lastgroup)
    value, start = match[name], match.start(name)
    if name == "text":
        quote = value[0]
        return Token(TokenKind.TEXT, value[1:-1].replace(2 * quote, quote), start)
    if name == "name":
        is_keyword = value.upper() in KEYWORDS
        kind = TokenKind.KEYWORD if is_keyword else TokenKind.NAME
        return Token(kind, value.upper() if is_keyword else value, start)
    return Token(TokenKind[name.upper()], value, start)


def _unreadable(text: str, place: int) -> PredicateError:
    place += len(text[place:]) - len(text[place:].lstrip())
    char = text[place]
    if char in "'\"":
        return PredicateError(text, place, f"this text has no closing {char}")
    if char.isdigit() or char in "+-.":
        return PredicateError(text, place, "not a number", "such as 3, -0.5 or 1e6")
    hint = "comparisons: = != <> < <= > >= IN BETWEEN LIKE EXISTS; also AND OR NOT ( )"
    return PredicateError(text, place, f"unexpected {char!r}", hint)
