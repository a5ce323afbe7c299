"""Workloads as text: what is written is what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.strategies import few

from penstock.errors import InputError
from penstock.workloads.expression import (
    NamedPart,
    PartSequence,
    PartSum,
    ScaledPart,
    TimedPart,
    Tree,
    parse,
    write,
)
from penstock.workloads.registry import make_workload

names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("then", "for", "min")
)
values = st.text(
    st.characters(exclude_characters='"', exclude_categories=["C", "Zl", "Zp"]), max_size=8
)
named = st.builds(NamedPart, names, st.lists(st.tuples(names, values), max_size=3).map(tuple))


def _inside(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def several(kind: type[PartSum] | type[PartSequence]) -> st.SearchStrategy[Tree]:
        # a sum within a sum is written without parentheses and read as one sum
        parts = trees.filter(lambda tree: not isinstance(tree, kind))
        return st.lists(parts, min_size=2, max_size=3).map(lambda each: kind(tuple(each)))

    return st.one_of(
        st.builds(ScaledPart, trees, st.floats(0, 1e9)),
        st.builds(TimedPart, trees, st.integers(1, 999)),
        several(PartSum),
        several(PartSequence),
    )


@few
@given(st.recursive(named, _inside, max_leaves=5))
def test_what_is_written_is_read_as_the_same_tree(tree: Tree) -> None:
    assert parse(write(tree)) == tree


@few
@given(st.text(alphabet='ab1.+*()=," thenfor', max_size=20))
def test_any_text_is_read_or_refused_politely(text: str) -> None:
    try:
        tree = parse(text)
    except InputError as refused:
        assert refused.field == "workload"
    else:
        assert parse(write(tree)) == tree


def test_a_factor_binds_tighter_than_a_sum_and_a_sum_than_a_sequence() -> None:
    a, b, c = NamedPart("a"), NamedPart("b"), NamedPart("c")
    assert parse("a + 2 * b then c * 3 for 5") == PartSequence(
        (PartSum((a, ScaledPart(b, 2.0))), TimedPart(ScaledPart(c, 3.0), 5))
    )
    assert parse("2*(a+b)") == ScaledPart(PartSum((a, b)), 2.0)


def test_nested_sums_and_sequences_are_one() -> None:
    assert parse("a + (b + c)") == parse("(a + b) + c") == parse("a + b + c")
    assert parse("a then (b then c)") == parse("(a then b) then c")


def test_parameters_are_kept_as_text() -> None:
    tree = parse('trace(file="my load.csv", scale=2e3, start=-1) for 10 min')
    assert tree == TimedPart(
        NamedPart("trace", (("file", "my load.csv"), ("scale", "2e3"), ("start", "-1"))), 10
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected the name of a workload but found the end"),
        ("cosine +", "expected the name of a workload but found the end"),
        ("cosine random", "expected the end, +, *, for or then but found 'random' at position 8"),
        ("cosine * random", "expected a number but found 'random' at position 10"),
        ("3 cosine", "expected * after a number but found 'cosine' at position 3"),
        ("then", "expected the name of a workload but found 'then' at position 1"),
        ("(cosine", "expected ) but found the end"),
        ("cosine(mean)", "expected = after mean but found ')' at position 12"),
        ("cosine(mean=)", "expected a value but found ')' at position 13"),
        ("cosine()", "expected the name of a parameter but found ')' at position 8"),
        ("cosine for 1.5", "expected whole minutes, at least 1, but found '1.5' at position 12"),
        ("cosine for 0", "expected whole minutes, at least 1, but found '0' at position 12"),
        ("cosine - ramp", "but found '-' at position 8"),
    ],
)
def test_mistakes_are_shown_where_they_are(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(" * 3000 + "constant" + ")" * 3000, "parentheses within each other"),
        ("constant" + " * 1" * 400, "at most 200 times"),
        ("(" * 40 + "constant" + (" * 1" * 9 + ")") * 40, "at most 200 times"),
        (f"constant for {'9' * 5000}", "whole minutes"),
        ("constant + " * 3000 + "constant", "at most 10,000 characters"),
    ],
)
def test_texts_that_are_too_deep_or_too_long_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse(text)


def test_the_deepest_text_can_be_built_and_written() -> None:
    text = "(" * 50 + "constant(rate=1)" + " * 1" * 200 + ")" * 50
    tree = parse(text)
    assert parse(write(tree)) == tree
    assert make_workload(text, 1).total_records == 60
