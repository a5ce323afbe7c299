"""The parser: what it reads, and that every mistake names its place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pubsub.language.predicates import CASES, Case

from penstock.errors import InputError
from penstock.pubsub.language.boxes import compile_boxes
from penstock.pubsub.language.parser import MAX_DEPTH, parse_predicate
from penstock.pubsub.language.predicate import And, Exists, Membership, Or, Order, Ordering, Prefix
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.language.tokens import MAX_LENGTH

A, B, C = (Exists(name) for name in "abc")
SIGNS = ["(", ")", ",", "=", "!=", "<>", "<", "<=", ">", ">="]
KEYWORDS = ["and", "OR", "not", "in", "between", "like", "exists", "true", "false"]
LITERALS = ["1", "-2.5", "1e9", "'x'", '"y%"', "'", "é", "\0", "1.2.3", "%", "  ", "\n"]
WORDS = ["a", "b.c", *SIGNS, *KEYWORDS, *LITERALS]


def test_and_binds_closer_than_or() -> None:
    text = "EXISTS a OR EXISTS b AND EXISTS c"
    assert parse_predicate(text) == Or((A, And((B, C))))
    assert parse_predicate("(EXISTS a OR EXISTS b) AND EXISTS c") == And((Or((A, B)), C))


def test_keywords_have_any_case_and_names_keep_theirs() -> None:
    assert parse_predicate("Price iN (1) Or eXists B") == Or(
        (Membership("Price", (1.0,)), Exists("B"))
    )


def test_texts_have_single_or_double_quotes() -> None:
    assert parse_predicate("a = 'O''Hara'") == parse_predicate('a = "O\'Hara"')
    assert parse_predicate("a like 'x''y%'") == Prefix("a", "x'y")


@pytest.mark.parametrize("text", ["2", "+2", "2.", "2.0", "0.2e1", "200E-2"])
def test_numbers_have_every_usual_form(text: str) -> None:
    assert parse_predicate(f"a <{text}") == Ordering("a", Order.LESS, 2.0)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "expected an attribute"),
        ("price >", 7, "expected a number after >, not the end"),
        ("price > 'x'", 8, "expected a number after >, not the text 'x'"),
        ("price = high", 8, "expected a number, a text in quotes, TRUE or FALSE, not 'high'"),
        ("price 5", 6, "expected one of = !="),
        ("price = 5 volume = 3", 10, "expected AND, OR or the end, not 'volume'"),
        ("(price = 5", 10, "expected ')', not the end"),
        ("price IN (1, 'x')", 13, "must be of one type"),
        ("price BETWEEN 5 AND 3", 20, "3 is below 5"),
        ("name LIKE 'a%b%'", 10, "a prefix with one %"),
        ("name LIKE 'ab'", 10, "a prefix with one %"),
        ("name LIKE 'a_%'", 10, "a prefix with one %"),
        ("price NOT = 5", 10, "expected IN, BETWEEN or LIKE, not '='"),
        ("price = 5 && x = 1", 10, "unexpected '&'"),
        ("name = 'open", 7, "no closing '"),
        ("price = 1.2.3", 8, "not a number"),
        ("price = 5x", 8, "not a number"),
        ("price = 1e999", 8, "too large"),
        ("NOT", 3, "expected an attribute"),
        ("and = 1", 0, "expected an attribute, NOT, EXISTS or (, not 'AND'"),
    ],
)
def test_a_mistake_names_its_place(text: str, position: int, problem: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse_predicate(text)
    assert (caught.value.position, problem in caught.value.reason) == (position, True), caught.value


def test_a_message_shows_the_line_with_a_caret() -> None:
    with pytest.raises(InputError) as caught:
        parse_predicate("price > 1\n  AND volume << 3")
    assert str(caught.value).splitlines()[1:] == ["    AND volume << 3", "                ^"]


def test_the_line_of_a_long_predicate_is_cut_around_the_place() -> None:
    with pytest.raises(PredicateError) as caught:
        parse_predicate("a = 1 AND " * 50 + "&" + " OR b = 2" * 50)
    shown, caret = str(caught.value).splitlines()[1:3]
    assert len(shown) < 90
    assert shown[caret.index("^")] == "&"


def test_limits() -> None:
    deep = "(" * (MAX_DEPTH - 1) + "a = 1" + ")" * (MAX_DEPTH - 1)
    assert parse_predicate(deep) == Membership("a", (1.0,))
    for text in (f"({deep})", "NOT " * 500 + "a = 1", "(" * 4000):
        with pytest.raises(PredicateError, match="nested"):
            parse_predicate(text)
    with pytest.raises(PredicateError, match="at most 4,096"):
        parse_predicate("a = 1" + " " * MAX_LENGTH)


@settings(max_examples=300)
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join))
def test_garbage_is_refused_with_a_place_or_compiled(text: str) -> None:
    try:
        compile_boxes(text)
    except PredicateError as error:
        assert 0 <= error.position <= len(text)


@given(case=CASES, data=st.data())
def test_a_damaged_predicate_is_refused_with_a_place_or_compiled(
    case: Case, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(case.text)))
    end = data.draw(st.integers(start, len(case.text)))
    try:
        compile_boxes(case.text[:start] + data.draw(st.text(max_size=3)) + case.text[end:])
    except PredicateError as error:
        assert error.position >= 0
