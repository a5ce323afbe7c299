"""Server-sent events: the parser gives the same events however the stream is cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.pubsub.event_stream import StreamEvent, parse_events

#: Text without line ends, but with characters at which `str.splitlines` would cut.
TEXTS = st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"), max_size=6)
EVENTS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), max_size=5)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(events=EVENTS, end=ENDS, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_every_cut_gives_the_same_events(
    events: list[tuple[str, list[str]]], end: str, cuts: list[int]
) -> None:
    lines = []
    for kind, data in events:
        lines += [f"event: {kind}", ": comment", *(f"data: {line}" for line in data), ""]
    text = "".join(line + end for line in lines)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    parts = [text[a:b] for a, b in pairwise(places)]
    expected = [(kind or "message", "\n".join(data)) for kind, data in events]
    found = [(event.type, event.data) for event in parse_events([*parts, end])]
    assert found == expected


def test_an_id_lasts_until_the_next_one() -> None:
    text = "id: 4\ndata: a\n\ndata: b\n\nid: 5\ndata: c\n\nid: 6\ndata: cut"
    events = list(parse_events([text], last_id="3"))
    assert events == [
        StreamEvent(type="message", id="4", data="a"),
        StreamEvent(type="message", id="4", data="b"),
        StreamEvent(type="message", id="5", data="c"),
    ]


def test_fields_without_data_are_no_event() -> None:
    assert list(parse_events(["retry: 5\n\nevent: x\n\n: ping\n\n"])) == []
