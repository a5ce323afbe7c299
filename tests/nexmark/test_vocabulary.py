"""Our own URLs and letters keep the reference's rules."""

import re
from itertools import islice

from penstock.nexmark.vocabulary import CHANNELS, HOT_CHANNELS, builtin_tables

URL = re.compile(
    r"https://www\.nexmark\.com/[a-z_]{3,4}/[a-z_]{3,4}/[a-z_]{3,4}/item\.htm\?query=1"
    r"(&channel_id=(-?\d+))?"
)


def test_urls() -> None:
    urls = builtin_tables().urls.to_pylist()
    assert len(urls) == len(set(urls)) == len(CHANNELS) == 10_004
    found = [URL.fullmatch(url) for url in urls]
    assert all(found)
    assert not any(match and match[1] for match in found[: len(HOT_CHANNELS)])
    for number, match in islice(enumerate(found[len(HOT_CHANNELS) :]), 100):
        if match and match[1]:
            mirrored = int(f"{number:032b}"[::-1], 2)
            assert int(match[2]) in (mirrored, 2**32 - mirrored, -(2**31))
    named = sum(match is not None and match[1] is not None for match in found)
    assert 8900 < named < 9100


def test_letters_of_the_pool() -> None:
    pool = bytes(builtin_tables().pool).decode()
    assert len(pool) == 1 << 20
    assert set(pool) == {chr(letter) for letter in range(ord("H"), ord("z") + 1)}
