"""Runs one policy with its guards, and keeps the history that they need."""

import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

from penstock.control.answers import check_answer
from penstock.control.failures import describe_error
from penstock.control.limits import Caller, call_directly
from penstock.core.decision import Decision
from penstock.core.guards import DecisionHistory, Guards, apply_guards
from penstock.core.policy import Applied, Policy, trim
from penstock.core.snapshot import Snapshot
from penstock.errors import InputError, PolicyError

#: Applied decisions that are kept; no policy looks further back.
MAX_APPLIED = 64


class Decider:
    """Feeds snapshots to a policy and its guards, one after the other.

    Policies and guards are pure; only this class keeps state for them. Its size is bounded by
    the look-back of the policy, whatever the length of a run.
    """

    def __init__(
        self,
        policy: Policy,
        params: Any = None,
        guards: Guards | None = None,
        call: Caller = call_directly,
    ) -> None:
        self.policy = policy
        self.params = policy.params() if params is None else params
        #: None: no guards, not even the bounds.
        self.guards = guards
        #: Whether the policy ever answered: an earlier error is a mistake of the user.
        self.has_answered = False
        self._call = call
        self._history: list[Snapshot] = []
        self._decided: deque[Decision] = deque()
        self._applied: deque[Decision] = deque(maxlen=MAX_APPLIED)

    def decide(self, snapshot: Snapshot) -> Decision:
        """Return the decision for a snapshot; its time must not be before that of the last one.

        Raises `PolicyError` if the policy fails, `AnswerError` for an invalid answer, and
        `TimeoutError` beyond a time limit. The snapshot is kept in every case.
        """
        self.see(snapshot)
        # local names, because an abandoned call keeps running in its thread
        policy, history, applied, kept = self.policy, self._history, [*self._applied], self.params

        def question() -> tuple[Any, Decision]:
            params = policy.measure_once(kept, snapshot)
            return params, _call(policy, history, applied, params)

        params, answer = self._call(question)
        decision = check_answer(answer, snapshot, policy.name)
        if self.guards is not None:
            past = DecisionHistory(decided=list(self._decided), applied=applied)
            decision = apply_guards(decision, snapshot, past, self.guards)
        self.params = params
        self._remember(decision)
        return decision

    def note_applied(self, decision: Decision) -> None:
        """Remember that a decision changed the pipeline."""
        self._applied.append(decision)

    def see(self, snapshot: Snapshot) -> None:
        """Keep a snapshot without a decision."""
        if self._history and snapshot.at < self._history[-1].at:
            problem = f"must not go back, got {snapshot.at:g} after {self._history[-1].at:g}"
            raise InputError("at", problem, "snapshots are read in the order of their time")
        if not getattr(snapshot, self.policy.reads):
            other = "hosts" if self.policy.reads == "operators" else "operators"
            problem = f"missing: {self.policy.name} decides about {self.policy.reads}"
            raise InputError(self.policy.reads, problem, f"this snapshot has {other} only")
        self._history = trim([*self._history, snapshot], self.policy.lookback_s(self.params))

    def recall(self, snapshot: Snapshot, decision: Decision) -> None:
        """Restore a decision of an earlier part of the same run."""
        self.see(snapshot)
        self.params = self.policy.measure_once(self.params, snapshot)
        self._remember(decision)

    def _remember(self, decision: Decision) -> None:
        self.has_answered = True
        if self.guards is None:
            return
        self._decided.append(decision)
        while self._decided[0].at < decision.at - self.guards.memory_s - 1e-9:
            self._decided.popleft()


def _call(policy: Policy, history: Sequence[Snapshot], applied: Applied, params: Any) -> Decision:
    """Call a policy; every error but a mistake in its parameters becomes a `PolicyError`."""
    try:
        return policy.decide(history, applied, params)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() in a policy ends no command, either
        raise PolicyError(policy.name, f"{describe_error(error)}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Return the place where a policy failed."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    name = last.filename.rpartition("/")[2]
    return f" ({name}:{last.lineno})" if last.lineno else ""
