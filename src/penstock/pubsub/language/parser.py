"""Parses predicates such as `price BETWEEN 10 AND 20 AND symbol LIKE 'AB%'`."""

import math

from penstock.pubsub.language.predicate import (
    And,
    Between,
    Exists,
    Literal,
    Membership,
    Not,
    Or,
    Order,
    Ordering,
    Predicate,
    Prefix,
)
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.language.tokens import Token, TokenKind, split_tokens

#: Parentheses and NOT may be nested this deep.
MAX_DEPTH = 32
_COMPARISONS = "one of = != <> < <= > >= IN BETWEEN LIKE"


def parse_predicate(text: str) -> Predicate:
    """Parse a predicate; `PredicateError` points at a mistake.

    >>> parse_predicate("NOT order.price >= 2.5")
    Not(operand=Ordering(attribute='order.price', order=<Order.AT_LEAST: '>='>, bound=2.5))
    """
    return _PredicateParser(text).parse()


class _PredicateParser:
    """A recursive-descent parser with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = split_tokens(text)
        self._next = 0
        self._depth = 0

    def parse(self) -> Predicate:
        predicate = self._alternatives()
        if self._peek().kind is not TokenKind.END:
            raise self._unexpected("AND, OR or the end")
        return predicate

    def _alternatives(self) -> Predicate:
        operands = [self._conjunction()]
        while self._skip("OR"):
            operands.append(self._conjunction())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _conjunction(self) -> Predicate:
        operands = [self._factor()]
        while self._skip("AND"):
            operands.append(self._factor())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _factor(self) -> Predicate:
        start = self._peek()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._mistake(start, f"nested more than {MAX_DEPTH} deep")
        factor = self._nested_factor()
        self._depth -= 1
        return factor

    def _nested_factor(self) -> Predicate:
        if self._skip("NOT"):
            return Not(self._factor())
        if self._skip("("):
            inner = self._alternatives()
            self._expect(")")
            return inner
        if self._skip("EXISTS"):
            return Exists(self._attribute())
        return self._comparison(self._attribute())

    def _comparison(self, attribute: str) -> Predicate:
        operator = self._peek()
        if self._skip("="):
            return Membership(attribute, (self._literal(),))
        if self._skip("!=") or self._skip("<>"):
            return Membership(attribute, (self._literal(),), is_negated=True)
        if operator.kind is TokenKind.SIGN and operator.value in tuple(Order):
            self._take()
            return Ordering(attribute, Order(operator.value), self._number(operator.value))
        is_negated = self._skip("NOT")
        if self._skip("IN"):
            return Membership(attribute, self._literals(), is_negated)
        if self._skip("BETWEEN"):
            return self._between(attribute, is_negated)
        if self._skip("LIKE"):
            return Prefix(attribute, self._prefix(), is_negated)
        raise self._unexpected("IN, BETWEEN or LIKE" if is_negated else _COMPARISONS)

    def _between(self, attribute: str, is_negated: bool) -> Between:
        low = self._number("BETWEEN")
        self._expect("AND")
        start = self._peek()
        high = self._number("AND")
        if high < low:
            hint = "BETWEEN has the smaller number first"
            raise self._mistake(start, f"{high:g} is below {low:g}", hint)
        return Between(attribute, low, high, is_negated)

    def _literals(self) -> tuple[Literal, ...]:
        self._expect("(")
        values = [self._literal()]
        while self._skip(","):
            start = self._peek()
            values.append(self._literal())
            if type(values[-1]) is not type(values[0]):
                raise self._mistake(start, "the values of IN must be of one type")
        self._expect(")")
        return tuple(values)

    def _literal(self) -> Literal:
        token = self._peek()
        if token.kind is TokenKind.TEXT:
            return self._take().value
        if token.kind is TokenKind.NUMBER:
            return self._number("")
        if self._skip("TRUE"):
            return True
        if self._skip("FALSE"):
            return False
        hint = f"write texts in quotes: '{token.value}'" if token.kind is TokenKind.NAME else ""
        raise self._unexpected("a number, a text in quotes, TRUE or FALSE", hint)

    def _number(self, after: str) -> float:
        token = self._peek()
        if token.kind is not TokenKind.NUMBER:
            hint = "texts have = != IN and LIKE" if token.kind is TokenKind.TEXT else ""
            raise self._unexpected(f"a number after {after}", hint)
        value = float(self._take().value)
        if math.isinf(value):
            raise self._mistake(token, "too large for a double-precision number")
        return value

    def _prefix(self) -> str:
        token = self._peek()
        if token.kind is not TokenKind.TEXT:
            raise self._unexpected("a text in quotes after LIKE", "such as LIKE 'ab%'")
        pattern = self._take().value
        prefix = pattern.removesuffix("%")
        if prefix == pattern or "%" in prefix or "_" in prefix:
            hint = "LIKE 'ab%' matches texts that begin with ab; for a whole text use ="
            raise self._mistake(token, "a pattern is a prefix with one % at its end and no _", hint)
        return prefix

    def _attribute(self) -> str:
        if self._peek().kind is not TokenKind.NAME:
            raise self._unexpected("an attribute, NOT, EXISTS or (")
        return self._take().value

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _skip(self, value: str) -> bool:
        token = self._peek()
        is_next = token.kind in (TokenKind.SIGN, TokenKind.KEYWORD) and token.value == value
        self._next += is_next
        return is_next

    def _expect(self, value: str) -> None:
        if not self._skip(value):
            raise self._unexpected(f"'{value}'")

    def _unexpected(self, expected: str, hint: str = "") -> PredicateError:
        token = self._peek()
        return self._mistake(token, f"expected {expected}, not {token}", hint)

    def _mistake(self, token: Token, problem: str, hint: str = "") -> PredicateError:
        return PredicateError(self._text, token.position, problem, hint)
