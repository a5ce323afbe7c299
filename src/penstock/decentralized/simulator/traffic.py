"""The traffic of the protocol: the paper's message formula, and its growth with the nodes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.decentralized.simulator.timeline import ScalingAction, ScalingTimeline

#: Fewer points give no fit.
MIN_POINTS = 5


def predict_messages(copies: int, deciders: int, neighbours: int) -> int:
    """Return 2 min(k, n) (|succs| + |preds|) + k: k copies that n instances decide on at once.

    >>> predict_messages(1, 7, 14), predict_messages(10, 4, 14)
    (29, 122)
    """
    return 2 * min(copies, deciders) * neighbours + copies


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicationPhase:
    """All duplications that the instances of one operator decide on in one step."""

    operator: int
    step: int
    copies: int
    deciders: int
    neighbours: int
    #: Messages that arrived.
    messages: int

    @property
    def predicted(self) -> int:
        """The messages by the formula."""
        return predict_messages(self.copies, self.deciders, self.neighbours)


def find_duplication_phases(timeline: ScalingTimeline) -> Iterator[DuplicationPhase]:
    """Yield the phases whose duplications have all ended."""
    groups: dict[tuple[int, int], list[ScalingAction]] = defaultdict(list)
    for action in timeline.actions:
        if action.copies:
            groups[action.operator, action.step].append(action)
    for (operator, step), actions in groups.items():
        if all(action.end_step is not None for action in actions):
            yield DuplicationPhase(
                operator=operator,
                step=step,
                copies=sum(action.copies for action in actions),
                deciders=timeline.deciders[operator, step],
                neighbours=actions[0].neighbours,
                messages=sum(action.messages for action in actions),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFit:
    """messages = factor x nodes ** exponent, by least squares of logarithms."""

    exponent: float
    factor: float
    #: Share of the variance that the line explains.
    r2: float
    points: int


def list_traffic_points(timeline: ScalingTimeline) -> list[tuple[float, int]]:
    """Return (mean nodes, messages) of windows in which every instance decides twice.

    Windows without messages are left out, as the paper leaves out steps without duplications.
    """
    total, length = timeline.total, 2 * timeline.setup.every
    starts = range(0, timeline.setup.steps - length + 1, length)
    windows = [slice(start, start + length) for start in starts]
    points = [(sum(total.instances[w]) / length, sum(total.messages[w])) for w in windows]
    return [(nodes, messages) for nodes, messages in points if messages]


def fit_power(points: Sequence[tuple[float, int]]) -> PowerFit | None:
    """Fit a power law; None if there are too few points or they have all the same nodes.

    >>> fit = fit_power([(n, 3 * n**2) for n in (10, 20, 40, 80, 160)])
    >>> round(fit.exponent, 6), round(fit.factor, 6), round(fit.r2, 6)
    (2.0, 3.0, 1.0)
    """
    if len(points) < MIN_POINTS or len({nodes for nodes, _ in points}) < MIN_POINTS:
        return None
    x, y = np.log(np.array(points, float)).T
    exponent, intercept = np.polyfit(x, y, 1)
    rest = y - (exponent * x + intercept)
    variance = float(np.var(y))
    return PowerFit(
        exponent=float(exponent),
        factor=float(np.exp(intercept)),
        r2=1 - float(np.var(rest)) / variance if variance else 1.0,
        points=len(points),
    )
