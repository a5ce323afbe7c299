"""Replicas that decided themselves: the policy reports what their votes add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import op, snap

from penstock.core.instance_decision import DecentralizedParams
from penstock.core.policies.decentralized import POLICY, report_votes
from penstock.core.reasons import Reason
from penstock.core.vote_count import VoteCount


@pytest.mark.parametrize(
    ("votes", "wanted", "reason"),
    [
        (VoteCount(before=3, after=3), 3, Reason.NO_VOTE),
        (VoteCount(before=3, after=3, is_fixed=True), 3, Reason.FIXED),
        (VoteCount(before=3, after=3, voters=3), 3, Reason.LOAD_IN_RANGE),
        (VoteCount(before=3, after=5, voters=3, copies=2), 5, Reason.INSTANCES_DUPLICATE),
        (VoteCount(before=3, after=1, voters=3, stops=2), 1, Reason.INSTANCES_STOP),
        (VoteCount(before=3, after=4, voters=3, copies=6), 4, Reason.CAPPED_BY_MAXIMUM),
        (VoteCount(before=3, after=2, voters=3, stops=2), 2, Reason.RAISED_TO_MINIMUM),
    ],
)
def test_the_decision_is_that_of_the_replicas(
    votes: VoteCount, wanted: int, reason: Reason
) -> None:
    target = report_votes(votes)
    assert (target.current, target.wanted, target.reason) == (votes.before, wanted, reason)


def test_the_reason_shows_the_numbers_of_the_votes() -> None:
    votes = VoteCount(
        before=3, after=4, voters=3, copies=6, load=12.0, capacity=5.0, probability=2.0
    )
    target = report_votes(votes)
    assert target.proposal == 9
    assert target.proposal_reason == Reason.INSTANCES_DUPLICATE
    assert target.why == (
        "3 of 3 replicas decided alone: on average load l = 12, capacity 5, p = 2;"
        " 3 + 6 copies - 0 stops = 9"
    )


@given(st.integers(1, 99), st.integers(1, 99), st.integers(0, 99), st.integers(0, 99))
def test_the_policy_draws_nothing_where_replicas_decide(
    before: int, after: int, copies: int, stops: int
) -> None:
    votes = VoteCount(before=before, after=after, voters=1, copies=copies, stops=stops)
    now = snap(op("map", before, input_rate=1e6, service_time_s=1.0, votes=votes))
    decision = POLICY.decide([now], [], DecentralizedParams())
    assert decision.targets["map"].wanted == after
