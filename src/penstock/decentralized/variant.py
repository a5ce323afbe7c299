"""Readings of the protocol: as corrected, as printed, and with one rule left out."""

from dataclasses import dataclass
from enum import Enum


class AckRule(Enum):
    """Which duplication and deletion messages are acknowledged."""

    ALL = "all"
    FROM_PREDECESSORS = "from predecessors"  # algorithms 5 and 9 if the ack is in the last branch
    NONE = "none"  # and nobody waits for one


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Rules of the protocol that can be left out; the default has all of them."""

    acks: AckRule = AckRule.ALL
    #: An idle node keeps deletions for its start (algorithm 9, lines 6 and 12).
    has_to_delete: bool = True
    #: The keeper refuses to stop (algorithm 11, line 3).
    has_keeper: bool = True
    #: A receiver knows by the operator of the sender on which side it is; as printed, by its
    #: sets of neighbours, which are empty in an idle node.
    knows_sides: bool = True
    #: The start signal names neighbours that left after their ack.
    names_departed: bool = True
    #: A stopping node sends its last results to the keeper of the next operator.
    drains_to_keeper: bool = True
    #: A node that is duplicating or stopping refuses a further decision.
    refuses_if_busy: bool = True


CORRECTED = Variant()
#: The paper's text with its pseudo-code read as favourably as possible.
PRINTED = Variant(knows_sides=False, names_departed=False, drains_to_keeper=False)
