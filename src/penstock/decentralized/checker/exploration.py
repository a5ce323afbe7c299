"""Breadth-first search through all states of the pipeline."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct

from penstock.decentralized.checker.configuration import CheckConfig
from penstock.decentralized.checker.invariants import Invariant, InvariantCheck, Violation
from penstock.decentralized.checker.partial_order import PartialOrder
from penstock.decentralized.checker.symmetry import Symmetry
from penstock.decentralized.checker.transitions import GlobalState, Transitions

#: How many states are explored between two progress reports.
PROGRESS_STATES = 20_000
NO_PARENT = 0xFFFFFFFF


@dataclass(slots=True, kw_only=True)
class StateGraph:
    """The states in the order in which they were found, and how they are connected."""

    states: list[bytes] = field(default_factory=list)
    #: The state from which each state was first reached.
    parents: "array[int]" = field(default_factory=lambda: array("I"))
    #: Steps that are no decisions, from state to state.
    sources: "array[int]" = field(default_factory=lambda: array("I"))
    targets: "array[int]" = field(default_factory=lambda: array("I"))
    quiet: "array[int]" = field(default_factory=lambda: array("I"))
    #: All steps that were taken.
    step_count: int = 0
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """How far a search is."""

    states: int
    frontier: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A search that has ended: with a violation, with all states, or with too many of them."""

    graph: StateGraph
    is_complete: bool
    violation: Violation | None = None
    #: The state in which the violation was found.
    violating: int | None = None


class Search:
    """Explores a configuration."""

    def __init__(self, config: CheckConfig) -> None:
        self.config = config
        self.transitions = Transitions(config)
        self._check = InvariantCheck(self.transitions)
        self._partial_order = PartialOrder(self.transitions)
        self._symmetry = Symmetry(self.transitions.tables)
        self._struct = Struct(f"{2 * self.transitions.slot_count + 1}I")
        self._numbers: dict[bytes, int] = {}
        self.graph = StateGraph()

    def run(
        self,
        max_states: int | None = None,
        on_progress: Callable[[SearchProgress], None] = lambda _: None,
    ) -> SearchResult:
        """Explore until a violation is found, all states are, or there are too many."""
        self._visit(self.canonical(self.transitions.initial()), NO_PARENT)
        graph, next_level, at = self.graph, 1, 0
        while at < len(graph.states):
            if at == next_level:
                graph.depth, next_level = graph.depth + 1, len(graph.states)
            if at % PROGRESS_STATES == 0:
                known = len(graph.states)
                on_progress(SearchProgress(states=known, frontier=known - at, depth=graph.depth))
            if (violation := self._expand(at)) is not None:
                return SearchResult(
                    graph=graph, is_complete=False, violation=violation, violating=at
                )
            at += 1
            if max_states is not None and len(graph.states) > max_states:
                return SearchResult(graph=graph, is_complete=False)
        return SearchResult(graph=graph, is_complete=True)

    def unpack(self, number: int) -> GlobalState:
        """Return a state by its number."""
        return self._struct.unpack(self.graph.states[number])

    def canonical(self, state: GlobalState) -> GlobalState:
        """Return the representative of a state."""
        return self._symmetry.canonical(state) if self.config.has_symmetry else state

    def _expand(self, number: int) -> Violation | None:
        """Check a state and add the states that follow."""
        state, graph = self.unpack(number), self.graph
        if (violation := self._check.find_violation(state)) is not None:
            return violation
        is_stuck = True
        if self.config.reduces_order:
            commuting = self._partial_order.commuting_step(state)
            if commuting is not None:
                self._link(number, commuting[0])
                return None
        for after, _ in self.transitions.reactions(state):
            is_stuck = False
            self._link(number, after)
        if is_stuck and (violation := self._check_rest(number, state)) is not None:
            return violation
        for after, _ in self.transitions.decisions(state):
            graph.step_count += 1
            self._visit(self.canonical(after), number)
        return None

    def _check_rest(self, number: int, state: GlobalState) -> Violation | None:
        """Check a state in which nothing happens unless a node decides."""
        if not self._check.is_quiet(state):
            problem = "nothing is on the way, and a node still waits"
            return Violation(invariant=Invariant.ACTIONS_END, problem=problem)
        self.graph.quiet.append(number)
        return self._check.find_disagreement(state)

    def _link(self, number: int, after: GlobalState) -> None:
        graph = self.graph
        graph.step_count += 1
        graph.sources.append(number)
        graph.targets.append(self._visit(self.canonical(after), number))

    def _visit(self, state: GlobalState, parent: int) -> int:
        packed = self._struct.pack(*state)
        number = self._numbers.get(packed)
        if number is None:
            number = self._numbers[packed] = len(self.graph.states)
            self.graph.states.append(packed)
            self.graph.parents.append(parent)
        return number
