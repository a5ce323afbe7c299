"""One policy with its guards and just as much of the past as they need."""

from collections import deque
from typing import Any

from penstock.core.decision import Decision
from penstock.core.guards import Guards, Past, guard
from penstock.core.policy import Policy, trim
from penstock.core.snapshot import Snapshot
from penstock.errors import InputError

#: Decisions carried out that are remembered; no policy looks further back.
REMEMBERED = 64


class Decider:
    """Feeds snapshots to a policy and its guards, one after the other.

    The functions behind are pure; this is the one place that remembers for them. Memory
    is bounded by the policy's look-back, whatever the length of a run.
    """

    def __init__(self, policy: Policy, params: Any = None, guards: Guards | None = None) -> None:
        self.policy = policy
        self.params = policy.params() if params is None else params
        #: None: not even the bounds, the policy's raw answer.
        self.guards = guards
        self._history: list[Snapshot] = []
        self._decided: deque[Decision] = deque()
        self._applied: deque[Decision] = deque(maxlen=REMEMBERED)

    def decide(self, snapshot: Snapshot) -> Decision:
        """Answer one snapshot; its time must not lie before that of the last one."""
        self._check(snapshot)
        self._history.append(snapshot)
        self._history = trim(self._history, self.policy.lookback_s(self.params))
        self.params = self.policy.measure_once(self.params, snapshot)
        applied = list(self._applied)
        decision = self.policy.decide(self._history, applied, self.params)
        if self.guards is not None:
            past = Past(decided=list(self._decided), applied=applied)
            decision = guard(decision, snapshot, past, self.guards)
            self._remember(decision)
        return decision

    def carried_out(self, decision: Decision) -> None:
        """Remember that a decision changed the pipeline."""
        self._applied.append(decision)

    def _check(self, snapshot: Snapshot) -> None:
        if self._history and snapshot.at < self._history[-1].at:
            problem = f"must not go back, got {snapshot.at:g} after {self._history[-1].at:g}"
            raise InputError("at", problem, "snapshots are read in the order of their time")
        if not getattr(snapshot, self.policy.reads):
            other = "hosts" if self.policy.reads == "operators" else "operators"
            problem = f"missing: {self.policy.name} decides about {self.policy.reads}"
            raise InputError(self.policy.reads, problem, f"this snapshot has {other} only")

    def _remember(self, decision: Decision) -> None:
        self._decided.append(decision)
        memory_s = self.guards.memory_s if self.guards else 0.0
        while self._decided[0].at < decision.at - memory_s - 1e-9:
            self._decided.popleft()
