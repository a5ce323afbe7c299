"""Styles of policies: the same colour, line and mark in all pictures.

Every policy declares its style. The colours are those of Okabe and Ito, and of Tol, which are
suitable for colour-blind readers. Each policy also has a mark, so that colour is never the only
key.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple
from zlib import crc32

from penstock.control.registry import policies
from penstock.core.policy import Line

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


_PATTERNS: dict[Line, Dash] = {
    "solid": "-",
    "dashed": _DASHED,
    "dotted": _DOTTED,
    "mixed": _MIXED,
}
#: The style of the cheapest run in hindsight, which is no policy.
HINDSIGHT = "hindsight", Style("#000000", _DOTTED, "x")
#: Colours of lines that are no policies, such as operators, in this order.
PLAIN = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#6E6E6E", "#882255")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_DASHES: tuple[Dash, ...] = ("-", _DASHED, _DOTTED, _MIXED)


@cache
def declared_styles() -> dict[str, Style]:
    """Return the style of every policy that declares one, and of the hindsight bound."""
    declared = {name: policy.style for name, policy in policies().items() if policy.style}
    styles = {
        name: Style(style.colour, _PATTERNS[style.line], style.mark)
        for name, style in declared.items()
    }
    return {HINDSIGHT[0]: HINDSIGHT[1], **styles}


@cache
def _free_styles() -> tuple[Style, ...]:
    """Return the styles that are left for policies that declare none."""
    styles = [
        Style(colour, dash, mark) for dash in _DASHES[1:] for mark in _MARKS for colour in PLAIN
    ]
    return tuple(style for style in styles if style not in declared_styles().values())


def style_of(policy: str, used: Collection[Style] = ()) -> Style:
    """Return the style of a policy; without a declared one, a free one that is not `used`.

    The search starts at a position that depends on the name, so that a policy has the same
    style in every picture.
    """
    if policy in declared_styles():
        return declared_styles()[policy]
    free = _free_styles()
    first = crc32(policy.encode()) % len(free)
    in_order = (*free[first:], *free[:first])
    return next((style for style in in_order if style not in used), free[first])


def styles_of(names: Sequence[str]) -> list[Style]:
    """Return a style for each; the second of one policy is a lighter variant of the first."""
    firsts: dict[str, Style] = {}
    styles = []
    for place, name in enumerate(names):
        if name not in firsts:
            firsts[name] = style_of(name, firsts.values())
        styles.append(_variant(firsts[name], list(names[:place]).count(name)))
    return styles


def _variant(style: Style, number: int) -> Style:
    """Return the style itself for 0, and lighter ones with other lines and marks after it."""
    if not number:
        return style
    first = _MARKS.index(style.mark) if style.mark in _MARKS else 0
    mark = _MARKS[(first + number) % len(_MARKS)]
    dash = _DASHES[(_DASHES.index(style.dash) + number) % len(_DASHES)]
    return Style(_lighter(style.colour, number), dash, mark)


def _lighter(colour: str, steps: int) -> str:
    """Mix a colour with white, more for every step, but never so much that it is hard to see."""
    white = min(0.6, 0.18 * steps)
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * white):02X}" for part in parts)
