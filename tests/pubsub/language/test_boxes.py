"""Boxes and the evaluator answer what an independent oracle answers."""

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.pubsub.language.predicates import CASES, PUBLICATIONS, Case, Publication

from penstock.pubsub.language.boxes import MAX_BOXES, compile_boxes, is_in_box
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.language.predicate_error import PredicateError


@settings(max_examples=400)
@given(case=CASES, publications=st.lists(PUBLICATIONS, min_size=1, max_size=20))
def test_boxes_and_evaluator_agree_with_the_oracle(
    case: Case, publications: list[Publication]
) -> None:
    predicate = parse_predicate(case.text)
    try:
        boxes = compile_boxes(case.text)
    except PredicateError as error:
        assert "boxes" in error.problem
        assume(False)
    for publication in publications:
        expected = case.decide(publication)
        assert is_match(predicate, publication) is expected
        assert any(is_in_box(box, publication) for box in boxes) is expected


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("a = 1", False),
        ("a != 1", False),
        ("a NOT IN (1)", False),
        ("a NOT LIKE 'x%'", False),
        ("a NOT BETWEEN 1 AND 2", False),
        ("NOT a = 1", True),
        ("NOT (a != 1)", True),
        ("NOT EXISTS a", True),
        ("NOT (a = 1 OR b = 2)", True),
    ],
)
def test_a_negated_comparison_is_false_without_the_attribute_and_not_is_the_opposite(
    text: str, missing: bool
) -> None:
    assert is_match(parse_predicate(text), {}) is missing
    assert any(is_in_box(box, {}) for box in compile_boxes(text)) is missing


def test_alternatives_of_one_attribute_are_one_box() -> None:
    assert len(compile_boxes(" OR ".join(f"a = {i}" for i in range(100)))) == 1


def test_a_contradiction_has_no_box_and_a_tautology_one_without_bounds() -> None:
    assert compile_boxes("a > 1 AND a < 1") == ()
    assert compile_boxes("a = 1 OR NOT a = 1") == ({},)


def test_too_many_boxes_are_refused() -> None:
    names = [f"a{i}" for i in range(MAX_BOXES)]
    assert len(compile_boxes(" OR ".join(f"{name} = 1" for name in names))) == MAX_BOXES
    with pytest.raises(PredicateError, match="more than 16 boxes"):
        compile_boxes(" OR ".join(f"{name} = 1" for name in [*names, "b"]))


def test_a_predicate_that_would_explode_is_refused_quickly() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(150))
    began_s = time.process_time()
    with pytest.raises(PredicateError, match="boxes"):
        compile_boxes(text)
    assert time.process_time() - began_s < 1


@pytest.mark.parametrize("tail", ["", "\0", "a", "zz", "\U0010ffff", "\U0010ffffz"])
def test_a_prefix_matches_every_longer_text(tail: str) -> None:
    for prefix in ("ab", "b\U0010ffff", ""):
        predicate = parse_predicate(f"a LIKE '{prefix}%'")
        assert is_match(predicate, {"a": prefix + tail})
    assert not is_match(parse_predicate("a LIKE 'ab%'"), {"a": "ac" + tail})
