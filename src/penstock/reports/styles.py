"""How policies look in pictures: the same colour, line and mark everywhere.

Colours are those of Okabe and Ito, and of Tol, which people with any colour vision can tell
apart; a mark or a dash goes with each, so that colour is never the only key.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

#: A dash pattern for matplotlib.
Dash = str | tuple[float, tuple[float, ...]]
_DASHED: Dash = (0, (5, 2))
_DOTTED: Dash = (0, (1, 1.2))
_MIXED: Dash = (0, (6, 1.5, 1.2, 1.5))


class Style(NamedTuple):
    """Colour, line and mark."""

    colour: str
    dash: Dash = "-"
    mark: str = "o"


POLICIES = {
    "ds2": Style("#0072B2", "-", "o"),
    "dhalion": Style("#D55E00", "-", "s"),
    "hpa-cpu": Style("#009E73", "-", "^"),
    "hpa-varga": Style("#CC79A7", "-", "D"),
    "flink": Style("#56B4E9", "-", "v"),
    "static-peak": Style("#6E6E6E", _DASHED, "X"),
    "static": Style("#222222", "-", "P"),
    "queueing": Style("#E69F00", "-", "h"),
    "dabs": Style("#882255", _MIXED, "<"),
    "psps": Style("#332288", _DASHED, ">"),
    "threshold": Style("#999933", _MIXED, "d"),
    "streaming-dra": Style("#117733", _DASHED, "p"),
    "enforcer": Style("#661100", _MIXED, "*"),
    "decentralized": Style("#44AA99", _DASHED, "H"),
    "hindsight": Style("#000000", _DOTTED, "x"),
}
#: For what is not a policy, such as operators, in this order.
PLAIN = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#6E6E6E", "#882255")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_DASHES: tuple[Dash, ...] = ("-", _DASHED, _DOTTED, _MIXED)


def style_of(policy: str) -> Style:
    """Return how a policy looks; one that is not known looks the same each time, too.

    >>> style_of("ds2").colour
    '#0072B2'
    """
    if policy in POLICIES:
        return POLICIES[policy]
    draw = crc32(policy.encode())
    return Style(PLAIN[draw % len(PLAIN)], _DASHES[1 + draw % 3], _MARKS[draw % len(_MARKS)])


def styles_of(policies: Sequence[str]) -> list[Style]:
    """Return a style for each; the second of one policy is a lighter sister of the first.

    >>> [style.mark for style in styles_of(["ds2", "flink", "ds2"])]
    ['o', 'v', 's']
    """
    styles = []
    for place, policy in enumerate(policies):
        style, before = style_of(policy), list(policies[:place]).count(policy)
        if before:
            first = _MARKS.index(style.mark) if style.mark in _MARKS else 0
            mark = _MARKS[(first + before) % len(_MARKS)]
            dash = _DASHES[before % len(_DASHES)]
            style = Style(_lighter(style.colour, before), dash, mark)
        styles.append(style)
    return styles


def _lighter(colour: str, steps: int) -> str:
    """Mix a colour with white, more for every step, but never so much that it is hard to see."""
    white = min(0.6, 0.18 * steps)
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * white):02X}" for part in parts)
