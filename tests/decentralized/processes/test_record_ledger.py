"""The ledger finds every record that was lost, repeated or invented."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.decentralized.processes.record_ledger import RecordLedger

RECORDS = st.lists(st.integers(0, 12), max_size=20)


@given(st.integers(0, 10), RECORDS)
def test_the_account_agrees_with_a_count_record_by_record(sent: int, processed: list[int]) -> None:
    ledger = RecordLedger(["map"])
    ledger.add_sent(range(sent))
    for record in processed:
        ledger.add_processed("map", [record])
    (account,) = ledger.accounts()
    assert list(account.lost) == [r for r in range(sent) if processed.count(r) == 0]
    assert list(account.repeated) == [r for r in range(13) if processed.count(r) > 1]
    assert list(account.unknown) == [r for r in range(sent, 13) if processed.count(r)]
    assert account.is_exact == (sorted(processed) == list(range(sent)))
    assert bool(account.problem) != account.is_exact


def test_a_ledger_is_settled_when_the_last_operator_has_every_record() -> None:
    ledger = RecordLedger(["map", "sink"])
    ledger.add_sent([0, 1])
    ledger.add_processed("map", [1, 0])
    ledger.add_processed("sink", [0])
    assert not ledger.is_settled
    ledger.add_processed("sink", [1])
    assert ledger.is_settled
    assert (ledger.sent, ledger.processed("map")) == (2, 2)


def test_a_problem_names_the_first_records() -> None:
    ledger = RecordLedger(["map"])
    ledger.add_sent(range(8))
    ledger.add_processed("map", [0, 0])
    (account,) = ledger.accounts()
    assert account.problem == "map lost 7: 1, 2, 3, 4, 5, ...; map repeated 1: 0"
