"""An engine that takes its time, with a clock that tests can turn, and policies to order."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from tests.builders import op, snap

from penstock.core.decision import Decision, Target
from penstock.core.policy import Applied, History, Policy
from penstock.core.reasons import Reason
from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.errors import NotReadyError

AT_MOST = 8
OPERATORS = ("read", "work")


class TurnedClock:
    """A clock that goes on only when it is turned."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


class SlowEngine:
    """Two operators, `read` and `work`; what goes wrong is told by functions of the time."""

    def __init__(
        self,
        clock: TurnedClock | None = None,
        *,
        refuses: Callable[[float], Exception | None] = lambda _at: None,
        stalls: Callable[[float], bool] = lambda _at: False,
        broken: Mapping[float, Exception] | None = None,
        not_ready: Collection[float] = (),
        oversleeps: Mapping[float, float] | None = None,
        over_at: float = float("inf"),
    ) -> None:
        self.clock = clock or TurnedClock()
        self.running = dict.fromkeys(OPERATORS, 1)
        self.requested = dict(self.running)
        #: What was taken on, and whatever was asked for, each with its time.
        self.plans: list[tuple[float, dict[str, int]]] = []
        self.asked: list[tuple[float, dict[str, int]]] = []
        self.events: list[Event] = []
        self._refuses, self._stalls = refuses, stalls
        self._broken, self._not_ready = dict(broken or {}), not_ready
        self._oversleeps, self._over_at = dict(oversleeps or {}), over_at

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def advance(self, seconds: float) -> None:
        assert seconds >= 0
        before = self.clock.now_s
        self.clock.now_s += seconds
        self.clock.now_s += self._oversleeps.get(self.clock.now_s, 0.0)
        if not self._stalls(before):
            self.running = dict(self.requested)

    def observe(self) -> Snapshot:
        now = self.clock.now_s
        if now in self._broken:
            raise self._broken[now]
        if now in self._not_ready:
            raise NotReadyError("still starting")
        first, second = OPERATORS
        return snap(
            op(first, self.running[first], max_parallelism=AT_MOST),
            op(second, self.running[second], max_parallelism=AT_MOST, upstream=(first,)),
            at=now,
            offered=100.0,
        )

    def apply(self, plan: Plan) -> None:
        now, replicas = self.clock.now_s, dict(plan.replicas)
        self.asked.append((now, replicas))
        check_plan(plan, dict.fromkeys(OPERATORS, AT_MOST), self.capabilities)
        refusal = self._refuses(now)
        if refusal is not None:
            raise refusal
        self.plans.append((now, replicas))
        self.requested |= replicas

    def status(self) -> Status:
        now = self.clock.now_s
        if -now in self._broken:
            raise self._broken[-now]
        events, self.events = tuple(self.events), []
        return Status(
            at=now,
            requested=dict(self.requested),
            running=dict(self.running),
            replica_s=dict.fromkeys(OPERATORS, now),
            events=events,
            is_over=now >= self._over_at,
        )


def policy_of(answer: Callable[[Snapshot], Any], name: str = "made") -> Policy:
    """A policy that answers a snapshot as it is told to."""

    def decide(history: History, _applied: Applied, _params: object) -> Any:
        return answer(history[-1])

    return Policy(name=name, summary="", paper="", decide=decide)


def wants(reason: str = Reason.BOTTLENECK, **replicas: int) -> Callable[[Snapshot], Decision]:
    """An answer that wants so many replicas, and leaves what it does not name."""

    def answer(now: Snapshot) -> Decision:
        targets = {
            name: Target(op.parallelism, replicas.get(name, op.parallelism), reason)
            for name, op in now.operators.items()
        }
        return Decision(now.at, "made", targets)

    return answer
