"""Workloads and times for property tests: numbers that floats hold exactly, so are the sums."""

from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st

from penstock.workloads.workload import Workload

#: Enough to find a slip, few enough for a suite of seconds.
few = settings(max_examples=25, deadline=None)

#: Eighths: sums, products and halves of them stay exact.
eighths = st.integers(0, 80_000).map(lambda n: n / 8)
times = st.integers(0, 8 * 400).map(lambda n: n / 8)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw up to six pieces whose lengths are powers of two, with jumps between them."""
    lengths = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 64.0]), min_size=1, max_size=6))
    edges = [0.0]
    for length in lengths:
        edges.append(edges[-1] + length)
    count = len(lengths)
    rates = st.lists(eighths, min_size=count, max_size=count)
    return Workload(edges_s=tuple(edges), starts=tuple(draw(rates)), ends=tuple(draw(rates)))


def exact_integral(load: Workload, t_s: float) -> Fraction:
    """Integrate with fractions, piece by piece: the oracle."""
    total = Fraction(0)
    for begin, end, start, stop in zip(
        load.edges_s, load.edges_s[1:], load.starts, load.ends, strict=False
    ):
        into = min(Fraction(t_s), Fraction(end)) - Fraction(begin)
        if into > 0:
            slope = (Fraction(stop) - Fraction(start)) / (Fraction(end) - Fraction(begin))
            total += into * Fraction(start) + slope * into * into / 2
    return total
