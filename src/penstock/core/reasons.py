"""Reasons of decisions: stable words, each with a sentence for people."""

from enum import StrEnum


class Reason(StrEnum):
    """Stable names for journals and tables, each with a sentence for people.

    A reason that `keeps` says that the policy left the operator as it runs instead of
    sizing it, so a guard that adds head room has nothing to add to.
    """

    sentence: str
    keeps: bool

    def __new__(cls, value: str, sentence: str, keeps: bool = False) -> "Reason":
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        member.keeps = keeps
        return member

    # rates
    RATE_ABOVE_CAPACITY = "rate-above-capacity", "more records come in than these replicas carry"
    RATE_BELOW_CAPACITY = "rate-below-capacity", "fewer replicas would carry what comes in"
    FITS = "fits", "the running replicas match the load"
    METRICS_MISSING = (
        "metrics-missing",
        "a measure that the formula needs is unknown or zero; without evidence nothing is changed",
        True,
    )
    # queues
    QUEUE_ABOVE_THRESHOLD = "queue-above-threshold", "the queue is longer than the upper threshold"
    QUEUE_BELOW_THRESHOLD = (
        "queue-below-threshold",
        "the queue is not longer than the lower threshold",
    )
    QUEUE_IN_RANGE = "queue-in-range", "the queue is between the two thresholds", True
    AT_MAXIMUM = "at-maximum", "the operator already has all the replicas it may have", True
    AT_MINIMUM = "at-minimum", "one replica is the least an operator can have", True
    SCALING_WILL_NOT_HELP = (
        "scaling-will-not-help",
        "more replicas would not help: one slice, or something beside the replicas, is the limit",
    )
    # response times
    RESPONSE_ABOVE_OBJECTIVE = (
        "response-above-objective",
        "the expected response time exceeds the objective",
    )
    RESPONSE_BELOW_OBJECTIVE = (
        "response-below-objective",
        "the expected response time leaves room to spare",
    )
    RESPONSE_IN_RANGE = (
        "response-in-range",
        "the expected response time is as it should be",
        True,
    )
    OBJECTIVE_UNREACHABLE = (
        "objective-unreachable",
        "no number of replicas reaches the objective: one record alone takes too long",
    )
    # bottlenecks
    BOTTLENECK = "bottleneck", "this operator holds the others back"
    BOTTLENECK_ELSEWHERE = (
        "bottleneck-elsewhere",
        "another operator is the bottleneck",
        True,
    )
    HEALTHY = "healthy", "no bottleneck and no lag: fewer replicas may do"
    HAS_LAG = "has-lag", "no bottleneck, but records still wait here", True
    # utilisation
    UTILISATION_ABOVE_TARGET = "utilisation-above-target", "the replicas are busier than the target"
    UTILISATION_BELOW_TARGET = (
        "utilisation-below-target",
        "the replicas are less busy than the target",
    )
    UTILISATION_AT_TARGET = "utilisation-at-target", "the replicas are as busy as they should be"
    STABILISING = "stabilising", "keeps the largest proposal of the window"
    # windows of measures
    INSIDE_BAND = "inside-band", "no operator is outside its utilisation band", True
    WINDOW_NOT_FULL = "window-not-full", "not enough has been measured since the last change", True
    SCALE_DOWN_DELAYED = "scale-down-delayed", "a decrease waits for its interval to pass", True
    INEFFECTIVE = "ineffective", "the last increase did not help, so another is not tried", True
    # instances
    INSTANCES_DUPLICATE = "instances-duplicate", "instances are above their upper threshold"
    INSTANCES_STOP = "instances-stop", "instances are below their lower threshold"
    NO_VOTE = "no-vote", "no replica has decided since the last tick", True
    LOAD_IN_RANGE = "load-in-range", "the load of each replica is between the thresholds", True
    # fixed sizes
    FIXED = "fixed", "this policy never changes"
    SIZED_FOR_PEAK = "sized-for-peak", "just enough replicas for the highest rate"
    # hosts and slices
    MEAN_ABOVE_RANGE = "mean-above-range", "the hosts are too busy on average"
    MEAN_BELOW_RANGE = "mean-below-range", "the hosts are too idle on average"
    HOST_ABOVE_RANGE = "host-above-range", "one host is too busy"
    HOST_BELOW_RANGE = "host-below-range", "one host is too idle"
    IN_RANGE = "in-range", "the load of every host is within its range", True
    WAITING = "waiting", "out of range, but not yet for long enough", True
    GRACE = "grace", "slices were moved a moment ago", True
    # guards
    OVERPROVISIONED = "overprovisioned", "head room was added"
    WITHIN_TOLERANCE = "within-tolerance", "too close to what runs to be worth a change"
    DRAINING = "draining", "the queue is still being worked off"
    STEP_LIMITED = "step-limited", "the change is limited to the maximum step"
    CAPPED_BY_MAXIMUM = "capped-by-maximum", "more than the operator may have"
    RAISED_TO_MINIMUM = "raised-to-minimum", "less than one replica"
    OVER_BUDGET = "over-budget", "all demands together exceed the budget, so each gives way"
    COOLING_DOWN = "cooling-down", "the last change was a moment ago"
    # people
    PAUSED = "paused", "a person paused scaling"
    PINNED = "pinned", "a person pinned the operator to this number"
    ASKED_BOUNDS = "asked-bounds", "a person set bounds for the operator"


_REASONS: dict[str, str] = {str(reason): reason for reason in Reason}


def read_reason(word: str) -> str:
    """Return the known reason of that name, or the word itself if another package defines it."""
    return _REASONS.get(word, word)
