"""What is checked: the size of the pipeline, how much happens at once, and which rules hold."""

from dataclasses import dataclass, replace
from string import ascii_uppercase

from penstock.decentralized.node_state import NodeId
from penstock.decentralized.variant import CORRECTED, PRINTED, AckRule, Variant
from penstock.errors import InputError, nearest

MAX_OPERATORS = 5
MAX_SLOTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """A rule that is left out, and what is expected to break."""

    summary: str
    variant: Variant = CORRECTED
    is_fifo: bool = True


BUGS = {
    "no-fifo": PlantedBug(summary="channels do not keep the order", is_fifo=False),
    "no-acks": PlantedBug(
        summary="nobody acknowledges, nobody waits", variant=Variant(acks=AckRule.NONE)
    ),
    "one-branch-ack": PlantedBug(
        summary="algorithms 5 and 9 acknowledge predecessors only",
        variant=Variant(acks=AckRule.FROM_PREDECESSORS),
    ),
    "no-to-delete": PlantedBug(
        summary="an idle node forgets deletions", variant=Variant(has_to_delete=False)
    ),
    "no-keeper": PlantedBug(summary="every node may stop", variant=Variant(has_keeper=False)),
    "sides-by-sets": PlantedBug(
        summary="as printed: a sender is looked up in sets that are empty in an idle node",
        variant=Variant(knows_sides=False),
    ),
    "start-without-departed": PlantedBug(
        summary="as printed: a start signal does not name neighbours that just left",
        variant=Variant(names_departed=False),
    ),
    "drain-to-any": PlantedBug(
        summary="as printed: a stopping node sends its last results to any successor",
        variant=Variant(drains_to_keeper=False),
    ),
    "decide-while-busy": PlantedBug(
        summary="as printed: a node may decide again before it has finished",
        variant=Variant(refuses_if_busy=False),
    ),
    "as-printed": PlantedBug(
        summary="the paper's pseudo-code, with an ack in every branch", variant=PRINTED
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig:
    """One configuration of the model checker."""

    #: Nodes of each operator at the beginning.
    instances: tuple[int, ...] = (2, 2, 2)
    #: Nodes that an operator can have at once.
    max_instances: int = 3
    #: Duplications and deletions that can be under way at once.
    actions: int = 2
    #: Records that can be in the pipeline at once.
    records: int = 1
    #: A name is free for another node once nobody knows its stopped node any more.
    reuses_names: bool = True
    variant: Variant = CORRECTED
    is_fifo: bool = True
    #: Nodes of one operator are interchangeable: explore one of each set of equal states.
    has_symmetry: bool = True
    #: Explore one order of steps that commute with all others.
    has_partial_order: bool = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.instances) <= MAX_OPERATORS:
            problem = f"must be 1 to {MAX_OPERATORS}, got {len(self.instances)}"
            raise InputError("--operators", problem)
        if not 1 <= self.max_instances <= MAX_SLOTS:
            problem = f"must be 1 to {MAX_SLOTS}, got {self.max_instances}"
            raise InputError("--max-instances", problem)
        for count in self.instances:
            if not 1 <= count <= self.max_instances:
                problem = f"must be 1 to {self.max_instances} (--max-instances), got {count}"
                raise InputError("--instances", problem)
        for field, value in (("--actions", self.actions), ("--records", self.records)):
            if value < 0:
                raise InputError(field, f"must not be negative, got {value}")

    @property
    def slot_names(self) -> tuple[NodeId, ...]:
        """Ids that nodes can have, by operator: A1, the keeper of the first one, A2, ..."""
        letters = ascii_uppercase[: len(self.instances)]
        return tuple(f"{op}{k + 1}" for op in letters for k in range(self.max_instances))

    @property
    def reduces_order(self) -> bool:
        """Whether the partial-order reduction applies: its argument needs all rules."""
        return self.has_partial_order and self.is_fifo and self.variant == CORRECTED


def plant_bug(config: CheckConfig, name: str) -> CheckConfig:
    """Return a configuration with a planted bug.

    >>> plant_bug(CheckConfig(instances=(1, 1), max_instances=2), "no-fifo").is_fifo
    False
    """
    if name not in BUGS:
        raise InputError("--bug", f"unknown bug {name!r}", nearest(name, BUGS))
    return replace(config, variant=BUGS[name].variant, is_fifo=BUGS[name].is_fifo)
