"""An engine without a model: it says what it was told to say, and remembers what it was asked."""

from collections.abc import Collection

from tests.builders import op, snap

from penstock.core.decision import Decision, Target
from penstock.core.policy import Applied, History, Policy, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.port import Capabilities, Plan, Status
from penstock.errors import NotReadyError, RescaleError


class FakeEngine:
    """One operator, `map`; changes take effect at once."""

    def __init__(self, not_ready: Collection[float] = (), refuses: Collection[float] = ()) -> None:
        self.now_s, self.replicas = 0.0, 1
        self.observed: list[float] = []
        self.plans: list[Plan] = []
        self._not_ready, self._refuses = not_ready, refuses

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def advance(self, seconds: float) -> None:
        self.now_s += seconds

    def observe(self) -> Snapshot:
        self.observed.append(self.now_s)
        if self.now_s in self._not_ready:
            raise NotReadyError("still starting")
        return snap(op("map", self.replicas), at=self.now_s, offered=100.0)

    def apply(self, plan: Plan) -> None:
        if self.now_s in self._refuses:
            raise RescaleError("no machine is free")
        self.plans.append(plan)
        self.replicas = plan.replicas["map"]

    def status(self) -> Status:
        replicas = {"map": self.replicas}
        return Status(at=self.now_s, requested=replicas, running=replicas, replica_s={"map": 0.0})


def _one_more(history: History, _applied: Applied, _params: object) -> Decision:
    def answer(now: OperatorSnapshot) -> Target:
        return Target(now.parallelism, now.parallelism + 1, Reason.BOTTLENECK)

    return each_operator("one-more", history[-1], answer)


#: Always wants one replica more.
ONE_MORE = Policy(name="one-more", summary="", paper="", decide=_one_more)
