"""Checks a configuration: all states, all invariants, and the shortest way to a violation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.decentralized.checker.configuration import CheckConfig
from penstock.decentralized.checker.exploration import Search, SearchProgress, SearchResult
from penstock.decentralized.checker.invariants import Invariant, Violation
from penstock.decentralized.checker.liveness import find_endless_state
from penstock.decentralized.checker.trace import TraceStep, shortest_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckVerdict:
    """What a check found."""

    config: CheckConfig
    states: int
    steps: int
    #: Steps from the beginning to the last state.
    depth: int
    quiet_states: int
    #: Whether all states were explored.
    is_complete: bool
    violation: Violation | None
    trace: tuple[TraceStep, ...]


def check_protocol(
    config: CheckConfig,
    max_states: int | None = None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
) -> CheckVerdict:
    """Explore a configuration and judge it.

    >>> check_protocol(CheckConfig(instances=(1, 1), max_instances=2)).violation is None
    True
    """
    search = Search(config)
    result = _check_liveness(search.run(max_states, on_progress))
    graph = result.graph
    return CheckVerdict(
        config=config,
        states=len(graph.states),
        steps=graph.step_count,
        depth=graph.depth,
        quiet_states=len(graph.quiet),
        is_complete=result.is_complete,
        violation=result.violation,
        trace=() if result.violating is None else shortest_trace(search, result.violating),
    )


def _check_liveness(result: SearchResult) -> SearchResult:
    if not result.is_complete:
        return result
    endless = find_endless_state(result.graph)
    if endless is None:
        return result
    problem = "no order of deliveries leads to rest"
    violation = Violation(invariant=Invariant.ACTIONS_END, problem=problem)
    return replace(result, violation=violation, violating=endless)
