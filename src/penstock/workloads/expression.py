"""Workloads as text: `cosine(noise=0) * 0.5 + constant for 30 then random`.

    sequence = sum { "then" sum }
    sum      = product { "+" product }
    product  = [number "*"] part { "*" number | "for" minutes ["min"] }
    part     = name [ "(" key=value { "," key=value } ")" ] | "(" sequence ")"

`*` and `for` bind tightest, `then` least. A value with a comma, a parenthesis or a space
in it stands in double quotes. Parsing yields a tree and knows no workload by name.

>>> parse("2 * a + b then c")
PartSequence(parts=(PartSum(parts=(ScaledPart(part=NamedPart(name='a', given=()), factor=2.0), ...
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from penstock.errors import InputError


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A workload of the registry, with parameters in their order."""

    name: str
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ScaledPart:
    """Every rate times a factor."""

    part: "Tree"
    factor: float


@dataclass(frozen=True, slots=True)
class TimedPart:
    """A part that lasts so many minutes."""

    part: "Tree"
    minutes: int


@dataclass(frozen=True, slots=True)
class PartSum:
    """Parts at the same time, their rates added."""

    parts: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class PartSequence:
    """Parts one after the other."""

    parts: tuple["Tree", ...]


Tree = NamedPart | ScaledPart | TimedPart | PartSum | PartSequence

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)(?![\w.])
    |(?P<name>[A-Za-z_][\w-]*)
    |(?P<sign>[+*(),=])
    |$)""",
    re.VERBOSE,
)
#: A value runs to the next comma, parenthesis or blank, or from quote to quote.
_VALUE = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s,()"=]+))')
#: More minutes are probably a typing error: these are two months.
MAX_MINUTES = 100_000
#: Limits of an expression; a deeper tree would exceed the recursion limit.
MAX_LENGTH, MAX_DEPTH = 10_000, 50
MAX_SUFFIXES = 200
_WORDS = frozenset({"then", "for", "min"})


def parse(text: str) -> Tree:
    """Read an expression; `InputError` says where it goes wrong."""
    if len(text) > MAX_LENGTH:
        problem = f"must have at most {MAX_LENGTH:,} characters, got {len(text):,}"
        raise InputError("workload", problem, "a file is better for this: trace(file=load.csv)")
    parser = _ExpressionParser(text)
    tree = parser.sequence()
    if parser.word:
        parser.refuse("the end, +, *, for or then")
    return tree


def write(tree: Tree) -> str:
    """Write a tree so that it is read as the same tree."""
    match tree:
        case NamedPart(name, given):
            pairs = ", ".join(f"{key}={_quoted(value)}" for key, value in given)
            return f"{name}({pairs})" if given else name
        case ScaledPart(part, factor):
            return f"{_inner(part)} * {factor!r}"
        case TimedPart(part, minutes):
            return f"{_inner(part)} for {minutes}"
        case PartSum(parts):
            return " + ".join(
                f"({write(p)})" if isinstance(p, PartSequence) else write(p) for p in parts
            )
        case PartSequence(parts):
            return " then ".join(write(part) for part in parts)


def _inner(part: Tree) -> str:
    return f"({write(part)})" if isinstance(part, PartSum | PartSequence) else write(part)


def _quoted(value: str) -> str:
    return value if re.fullmatch(r'[^\s,()"=]+', value) else f'"{value}"'


def _joined(kind: type[PartSum] | type[PartSequence], parts: list[Tree]) -> Tree:
    """Make one flat node: where the parentheses stood in a + (b + c) makes no difference."""
    flat: list[Tree] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


class _ExpressionParser:
    """A recursive-descent parser with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.depth, self.suffixes = 0, 0
        self.kind, self.word = "", ""
        self.step()

    def step(self) -> str:
        """Advance to the next token and return the previous one."""
        read = self.word
        self.start = len(self.text) - len(self.text[self.at :].lstrip())
        match = _TOKEN.match(self.text, self.at)
        if not match:
            self.word = self.text[self.start]
            self.refuse("a name, a number, +, *, ( or )")
        self.kind, self.word, self.at = match.lastgroup or "", match[0].strip(), match.end()
        return read

    def refuse(self, expected: str) -> NoReturn:
        token = f"{self.word!r} at position {self.start + 1}" if self.word else "the end"
        raise InputError(
            "workload",
            f"expected {expected} but found {token} of {self.text!r}",
            'write for example "cosine(noise=0) * 0.5 + constant for 30 then random"',
        )

    def sequence(self) -> Tree:
        parts = [self.sum()]
        while self.word == "then":
            self.step()
            parts.append(self.sum())
        return _joined(PartSequence, parts)

    def sum(self) -> Tree:
        parts = [self.product()]
        while self.word == "+":
            self.step()
            parts.append(self.product())
        return _joined(PartSum, parts)

    def product(self) -> Tree:
        factor = None
        if self.kind == "number":
            factor = float(self.step())
            if self.word != "*":
                self.refuse("* after a number")
            self.step()
        tree = self.part()
        while self.word in ("*", "for"):
            self.suffixes += 1
            if self.suffixes > MAX_SUFFIXES:
                self.refuse(f"at most {MAX_SUFFIXES} times * or for")
            sign = self.step()
            if self.kind != "number":
                self.refuse("a number")
            tree = ScaledPart(tree, float(self.step())) if sign == "*" else self.lasting(tree)
        return tree if factor is None else ScaledPart(tree, factor)

    def lasting(self, part: Tree) -> Tree:
        if not self.word.isdecimal() or not 1 <= float(self.word) <= MAX_MINUTES:
            self.refuse("whole minutes, at least 1,")
        tree = TimedPart(part, int(self.step()))
        if self.word == "min":
            self.step()
        return tree

    def part(self) -> Tree:
        if self.word == "(":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.refuse(f"at most {MAX_DEPTH} parentheses within each other")
            self.step()
            tree = self.sequence()
            self.close()
            self.depth -= 1
            return tree
        if self.kind != "name" or self.word in _WORDS:
            self.refuse("the name of a workload")
        name = self.step()
        return NamedPart(name, self.pairs() if self.word == "(" else ())

    def pairs(self) -> tuple[tuple[str, str], ...]:
        pairs = []
        while self.word in ("(", ","):
            self.step()
            if self.kind != "name":
                self.refuse("the name of a parameter")
            key = self.step()
            if self.word != "=":
                self.refuse(f"= after {key}")
            pairs.append((key, self.value()))
        self.close()
        return tuple(pairs)

    def value(self) -> str:
        """Read the raw text behind =, where a sign means nothing."""
        match = _VALUE.match(self.text, self.at)
        if not match:
            self.step()
            self.refuse("a value")
        self.at = match.end()
        self.step()
        return str(match[match.lastgroup or 0])

    def close(self) -> None:
        if self.word != ")":
            self.refuse(")")
        self.step()
