"""Without matplotlib a chart names the extra that installs it."""

import sys

import pytest

from penstock.errors import InputError
from penstock.reports.canvas import new_figure


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    hint = r"drawing a chart: needs matplotlib: pip install '.\[plots\]'"
    with pytest.raises(InputError, match=hint):
        new_figure(3.0)
