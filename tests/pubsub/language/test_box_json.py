"""Boxes as JSON."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.pubsub.language.box_json import decode_boxes, encode_boxes
from penstock.pubsub.language.boxes import compile_boxes

VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda n: repr(n).replace("e+", "e")),
    st.text(max_size=5).map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.sampled_from(["TRUE", "FALSE"]),
)


@given(st.lists(st.tuples(st.sampled_from(["a", "b.c"]), VALUES), min_size=1, max_size=4))
def test_boxes_come_back_as_they_were(comparisons: list[tuple[str, str]]) -> None:
    text = " OR ".join(f"{path} = {value} AND EXISTS d" for path, value in comparisons)
    boxes = compile_boxes(text)
    assert decode_boxes(encode_boxes(boxes)) == boxes


def test_extreme_numbers_and_half_surrogates_come_back() -> None:
    for text in ("a = 1.7976931348623157e308", "a <= -0.0", "a LIKE '\ud800%'", "NOT EXISTS a"):
        boxes = compile_boxes(text)
        assert decode_boxes(encode_boxes(boxes)) == boxes
