"""Parameters of the record-level simulator: operators, their queues, and common rules.

An operator has either one queue that all replicas share, like the topic of a Pulsar function, or
one queue per replica and a grouping that assigns records to them, as in Storm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.frozen_dict import FrozenDict
from penstock.core.params import Params, param
from penstock.core.topology import Topology
from penstock.engines.simulator.records.groupings import GROUPINGS
from penstock.engines.simulator.records.service import ServiceTime
from penstock.errors import InputError, nearest

SHARED = "shared"
QUEUES = (SHARED, *GROUPINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOperator:
    """One operator of a `RecordPipeline`."""

    name: str
    upstream: tuple[str, ...] = ()
    service: ServiceTime = field(default_factory=ServiceTime)
    #: Initial replicas, and the maximum (None: unlimited).
    replicas: int = 1
    max_replicas: int | None = None
    #: "shared", or the grouping that assigns records to the queues of the replicas.
    queue: str = SHARED
    #: Maximum of waiting records, for all replicas together; further records are dropped.
    queue_size: int | None = None
    #: Records sent to a downstream operator for each record processed; 1 where absent.
    sent: Mapping[str, float] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        if self.queue not in QUEUES:
            problem = f"must be one of {', '.join(QUEUES)}, got {self.queue!r}"
            raise self._input_error("queue", problem, nearest(self.queue, QUEUES))
        if self.queue_size is not None and self.queue_size < 0:
            raise self._input_error("queue_size", f"must be at least 0, got {self.queue_size}")
        for target, share in self.sent.items():
            if not 0 <= share < float("inf"):
                raise self._input_error(
                    f"sent.{target}", f"must be at least 0 and finite, got {share}"
                )
        self.check_replicas(self.replicas)

    def check_replicas(self, wanted: int) -> None:
        """Refuse a number of replicas outside the bounds of this operator."""
        high = self.max_replicas
        if wanted < 1 or (high is not None and wanted > high):
            bound = "at least 1" if high is None else f"from 1 to {high}"
            raise self._input_error("replicas", f"must be {bound}, got {wanted}")

    def _input_error(self, part: str, problem: str, hint: str = "") -> InputError:
        return InputError(f"{self.name}.{part}", problem, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules(Params):
    """Settings of the whole pipeline."""

    timeout_s: float | None = param(
        None, "age at which a record is dropped instead of begun (t_out)", unit="s", low=0
    )
    interval_s: float = param(
        30.0, "how often load balancing counts anew (td)", unit="s", low=0, above=True
    )
    startup_s: float = param(0.0, "from asking for a replica to having it", unit="s", low=0)
    pause_s: float = param(
        0.0, "an operator whose replicas change begins nothing that long", unit="s", low=0
    )
    restart_s: float | None = param(
        None, "each change drops all queues and stops everything that long", unit="s", low=0
    )
    keys: int = param(1000, "distinct keys of the records, for the fields grouping", low=1)
    key_skew: float = param(0.0, "exponent of Zipf's law for the keys; 0: all as likely", low=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPipeline:
    """Operators and the edges between them, validated.

    >>> a = RecordOperator(name="a", sent={"b": 0.7, "c": 0.3})
    >>> b, c = (RecordOperator(name=name, upstream=("a",)) for name in "bc")
    >>> RecordPipeline(operators=(a, b, c)).topology.sinks
    ('b', 'c')
    """

    operators: tuple[RecordOperator, ...]
    rules: RecordRules = field(default_factory=RecordRules)
    topology: Topology = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        for name in names:
            if names.count(name) > 1:
                raise InputError("operators", f"two have the name {name!r}")
        graph = Topology.of({op.name: op.upstream for op in self.operators})
        # a frozen dataclass can only be set through object
        object.__setattr__(self, "topology", graph)
        for operator in self.operators:
            downstream = graph.downstream[operator.name]
            for target in operator.sent:
                if target not in downstream:
                    problem = f"{target!r} is not downstream of {operator.name!r}"
                    raise InputError(f"{operator.name}.sent", problem, nearest(target, downstream))
