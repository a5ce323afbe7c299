"""Pictures: what is in them, in which colour, and that they are the same each time."""

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.control.registry import builtin_policies
from penstock.errors import InputError
from penstock.reports.canvas import render_svg
from penstock.reports.pictures import (
    Panel,
    PictureBar,
    PictureLine,
    Point,
    Range,
    bars,
    draw_over_time,
    draw_pareto,
)
from penstock.reports.styles import declared_styles, style_of, styles_of

pytestmark = pytest.mark.slow

MINUTES = (0, 1, 2, 3)
LOAD = Panel(
    title="offered load",
    unit="records/s",
    lines=(PictureLine(label="offered", minutes=MINUTES, values=(1, 5, 2, 4)),),
)


def exactly(mean: float) -> Range:
    return Range(mean=mean, low=mean, high=mean)


def replicas(*policies: str) -> Panel:
    lines = tuple(
        PictureLine(label=policy, policy=policy, minutes=MINUTES, values=(1, 2, 3, math.nan))
        for policy in policies
    )
    return Panel(title="replicas", unit="replicas", lines=lines, steps=True)


def texts(svg: str) -> list[str]:
    """Words are drawn as outlines, each with a comment that says them."""
    return re.findall(r"<!-- (.*?) -->", svg)


def test_panels_share_the_minutes_and_one_legend() -> None:
    svg = render_svg(lambda to: draw_over_time([LOAD, replicas("ds2", "flink")], to, "two runs"))
    shown = texts(svg)
    for words in ("offered load", "records/s", "replicas", "two runs"):
        assert words in shown
    assert [shown.count(word) for word in ("minutes", "ds2", "flink", "offered")] == [1, 1, 1, 0]


def test_a_policy_has_its_colour_in_every_picture() -> None:
    policy = "dhalion"
    point = Point(label="p", policy=policy, cost=exactly(1), latency=exactly(2))
    bar = PictureBar(label="p", policy=policy, value=exactly(1))
    for svg in (
        render_svg(lambda to: draw_over_time([replicas(policy)], to)),
        render_svg(lambda to: draw_pareto([point], to)),
        render_svg(lambda to: bars({"q1": [bar]}, to)),
    ):
        assert style_of(policy).colour.lower() in svg


def test_latency_may_be_logarithmic_and_have_a_level() -> None:
    line = PictureLine(label="ds2", policy="ds2", minutes=MINUTES, values=(0.1, 1, 10, 100))
    panel = Panel(
        title="latency", unit="s", lines=(line,), log=True, level=60, level_name="objective"
    )
    shown = texts(render_svg(lambda to: draw_over_time([panel], to)))
    assert {"0.1", "1", "10", "100", "objective"} <= set(shown)


def test_nothing_but_zeros_can_be_drawn() -> None:
    line = PictureLine(label="ds2", minutes=MINUTES, values=(0, 0, 0, 0))
    panel = Panel(title="latency", unit="s", lines=(line,), log=True)
    assert "latency" in texts(render_svg(lambda to: draw_over_time([panel], to)))


def test_points_are_named_and_scaled_by_how_far_apart_they_are() -> None:
    def drawn(latency: float) -> list[str]:
        points = [
            Point(label="near", policy="ds2", cost=exactly(1), latency=exactly(1)),
            Point(label="far", policy="flink", cost=exactly(2), latency=exactly(latency)),
        ]
        return texts(render_svg(lambda to: draw_pareto(points, to, "q1")))

    assert {"near", "far", "q1"} <= set(drawn(5))
    assert "0" in drawn(5) and "100" in drawn(500)


def test_the_same_values_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "a.png"):
        draw_over_time([LOAD], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    ElementTree.parse(tmp_path / "a.svg")
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.svg, \.png, \.pdf"):
        draw_over_time([LOAD], tmp_path / "a.bmp")
    with pytest.raises(InputError, match="cannot be written"):
        draw_over_time([LOAD], tmp_path / "nowhere" / "a.svg")


def test_every_policy_looks_like_no_other() -> None:
    styles = declared_styles()
    assert set(builtin_policies()) <= set(styles)
    assert len({style.colour for style in styles.values()}) == len(styles)
    assert len({style.mark for style in styles.values()}) == len(styles)


@pytest.mark.parametrize("policy", builtin_policies())
def test_two_runs_of_one_policy_differ_in_more_than_their_shade(policy: str) -> None:
    first, second = styles_of([policy, policy])
    assert first.dash != second.dash and first.mark != second.mark


def test_a_policy_without_a_style_looks_the_same_each_time() -> None:
    assert style_of("mine") == style_of("mine") not in declared_styles().values()


def test_policies_without_a_style_get_different_ones_in_one_picture() -> None:
    names = [f"mine-{number}" for number in range(60)]
    assert len(set(styles_of(names))) == 60


def test_sisters_of_one_policy_can_be_told_apart() -> None:
    sisters = styles_of(["hpa-cpu"] * 5)
    assert sisters[0] == declared_styles()["hpa-cpu"]
    assert len(set(sisters)) == 5
