"""One policy with its guards and just as much of the past as they need."""

import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

from penstock.control.answers import check_answer
from penstock.control.failures import in_words
from penstock.control.limits import Ask, directly
from penstock.core.decision import Decision
from penstock.core.guards import Guards, Past, guard
from penstock.core.policy import Applied, Policy, trim
from penstock.core.snapshot import Snapshot
from penstock.errors import InputError, PolicyError

#: Decisions carried out that are remembered; no policy looks further back.
REMEMBERED = 64


class Decider:
    """Feeds snapshots to a policy and its guards, one after the other.

    The functions behind are pure; this is the one place that remembers for them. Memory
    is bounded by the policy's look-back, whatever the length of a run.
    """

    def __init__(
        self,
        policy: Policy,
        params: Any = None,
        guards: Guards | None = None,
        ask: Ask = directly,
    ) -> None:
        self.policy = policy
        self.params = policy.params() if params is None else params
        #: None: not even the bounds, the policy's raw answer.
        self.guards = guards
        #: Whether there was ever an answer: what is wrong before that, the user can mend.
        self.has_answered = False
        self._ask = ask
        self._history: list[Snapshot] = []
        self._decided: deque[Decision] = deque()
        self._applied: deque[Decision] = deque(maxlen=REMEMBERED)

    def decide(self, snapshot: Snapshot) -> Decision:
        """Answer one snapshot; its time must not lie before that of the last one.

        Raises `PolicyError` if the policy fails, `AnswerError` for an answer that makes no sense,
        and `TimeoutError` where it is asked with a limit. The snapshot is remembered all the same.
        """
        self.see(snapshot)
        # bound here, for a question that is given up goes on in its thread
        policy, history, applied, kept = self.policy, self._history, [*self._applied], self.params

        def question() -> tuple[Any, Decision]:
            params = policy.measure_once(kept, snapshot)
            return params, _call(policy, history, applied, params)

        params, answer = self._ask(question)
        decision = check_answer(answer, snapshot, policy.name)
        if self.guards is not None:
            past = Past(decided=list(self._decided), applied=applied)
            decision = guard(decision, snapshot, past, self.guards)
        self.params = params
        self._remember(decision)
        return decision

    def carried_out(self, decision: Decision) -> None:
        """Remember that a decision changed the pipeline."""
        self._applied.append(decision)

    def see(self, snapshot: Snapshot) -> None:
        """Remember a snapshot without asking about it."""
        if self._history and snapshot.at < self._history[-1].at:
            problem = f"must not go back, got {snapshot.at:g} after {self._history[-1].at:g}"
            raise InputError("at", problem, "snapshots are read in the order of their time")
        if not getattr(snapshot, self.policy.reads):
            other = "hosts" if self.policy.reads == "operators" else "operators"
            problem = f"missing: {self.policy.name} decides about {self.policy.reads}"
            raise InputError(self.policy.reads, problem, f"this snapshot has {other} only")
        self._history = trim([*self._history, snapshot], self.policy.lookback_s(self.params))

    def recall(self, snapshot: Snapshot, decision: Decision) -> None:
        """Remember what was decided in an earlier part of the same run."""
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
    """Ask a policy; whatever it raises is a `PolicyError`, but for mistakes in its parameters."""
    try:
        return policy.decide(history, applied, params)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() in a policy ends no command, either
        raise PolicyError(policy.name, f"{in_words(error)}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Say where a policy failed."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    name = last.filename.rpartition("/")[2]
    return f" ({name}:{last.lineno})" if last.lineno else ""
