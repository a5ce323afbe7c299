"""Colours of the dashboard: lines can be told apart by people who are colour-blind."""

import re
from importlib.resources import files

import numpy as np
import pytest
from numpy.typing import NDArray

Colours = NDArray[np.float64]
CSS = (files("penstock.dashboard") / "assets" / "style.css").read_text()
#: The smallest distance between two colours in CIELAB; 2.3 is just noticeable side by side.
MIN_DISTANCE = 20.0
#: Contrast with the ground that WCAG 2 demands of graphical objects.
MIN_CONTRAST = 3.0
#: Machado, Oliveira and Fernandes 2009, severity 1.0: matrices for linear RGB.
VISIONS = {
    "normal": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def read_themes() -> dict[str, dict[str, str]]:
    """Return the variables of the light theme and of both places that declare the dark one."""
    light, dark, chosen = re.findall(r":root[^{]*\{([^}]*--c0[^}]*)\}", CSS)
    blocks = {"light": light, "dark": dark, "dark, chosen": chosen}
    return {name: dict(re.findall(r"(--\w+): (#\w+)", block)) for name, block in blocks.items()}


THEMES = read_themes()


def linear(*colours: str) -> Colours:
    wide = [c if len(c) == 7 else "#" + "".join(2 * d for d in c[1:]) for c in colours]
    shares = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in wide])
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def to_lab(rgb: Colours) -> Colours:
    x = rgb @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    parts = [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    return np.stack(parts, axis=1)


def smallest_distance(colours: list[str], vision: str) -> tuple[float, str]:
    """Return the distance of the two nearest colours, and which they are."""
    seen = np.clip(linear(*colours) @ np.array(VISIONS[vision]).T, 0.0, 1.0)
    lab = to_lab(seen)
    pairs = [(i, k) for i in range(len(lab)) for k in range(i)]
    distance, pair = min((float(np.linalg.norm(lab[i] - lab[k])), (k, i)) for i, k in pairs)
    return distance, f"c{pair[0]} and c{pair[1]}"


def test_the_distance_is_the_one_of_cielab() -> None:
    lab = to_lab(linear("#fff", "#000000", "#ff0000"))
    assert np.allclose(lab[0], [100, 0, 0], atol=0.01) and np.allclose(lab[1], 0, atol=0.01)
    assert np.allclose(lab[2], [53.24, 80.09, 67.20], atol=0.05)
    # the colours that the page had first
    assert smallest_distance(["#e59ac2", "#d98cb3"], "normal")[0] == pytest.approx(5.1, abs=0.1)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", THEMES)
def test_lines_differ_for_every_vision(theme: str, vision: str) -> None:
    colours = [THEMES[theme][f"--c{number}"] for number in range(8)]
    distance, pair = smallest_distance(colours, vision)
    assert distance >= MIN_DISTANCE, f"{pair} are {distance:.1f} apart"


@pytest.mark.parametrize("theme", THEMES)
def test_lines_stand_out_from_their_ground(theme: str) -> None:
    values = THEMES[theme]
    names = [*(f"--c{number}" for number in range(8)), "--bad", "--mark", "--accent"]
    light = linear(*(values[name] for name in names)) @ XYZ[1]
    ground = float((linear(values["--card"]) @ XYZ[1])[0])
    contrast = (np.maximum(light, ground) + 0.05) / (np.minimum(light, ground) + 0.05)
    assert contrast.min() >= MIN_CONTRAST, names[int(contrast.argmin())]


def test_the_dark_theme_is_the_same_by_choice_and_by_preference() -> None:
    assert THEMES["dark"] == THEMES["dark, chosen"]
