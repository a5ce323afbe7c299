"""The pipeline of a space: access points, matchers and exit points between topics."""

from dataclasses import dataclass

from penstock.errors import InputError
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.pipeline import Pipeline
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.operators.access import AccessPoint
from penstock.pubsub.operators.content import make_check
from penstock.pubsub.operators.exit import ExitPoint
from penstock.pubsub.operators.match import MatchPoint
from penstock.pubsub.operators.subscription_index import SubscriptionLayout
from penstock.pubsub.operators.topics import (
    ACKS,
    NOTICES,
    PARTIAL,
    PUBLICATIONS,
    REFUSALS,
    REQUESTS,
    SCHEMAS,
    SUBSCRIPTIONS,
    publication_columns,
)
from penstock.pubsub.spaces.space import ASPE, Space

ACCESS, MATCH, EXIT = "access", "match", "exit"


@dataclass(frozen=True, slots=True, kw_only=True)
class PubSubOptions:
    """How a space is served; the numbers of slices are fixed when a run is created."""

    access_slices: int = 8
    match_slices: int = 16
    exit_slices: int = 8
    #: How long notices, acks and refusals stay for subscribers that come back.
    keep: str = "1 hour, 1 GB"
    max_replicas: int = 8
    replicas: int = 1
    backend: Backend | None = None
    #: None: replicas of each operator scale on their own.
    hosts: Hosts | None = None

    def __post_init__(self) -> None:
        for name in ("access_slices", "match_slices", "exit_slices"):
            if getattr(self, name) < 1:
                raise InputError(name, f"must be at least 1, got {getattr(self, name)}")


#: 8, 16 and 8 slices.
DEFAULTS = PubSubOptions()


def build_pipeline(space: Space, options: PubSubOptions = DEFAULTS) -> Pipeline:
    """Declare the topics and operators; nothing in the pipeline is secret."""
    pipeline = Pipeline("pubsub", summary="content-based publish/subscribe", hosts=options.hosts)
    is_encrypted = space.scheme == ASPE
    columns = SCHEMAS | {PUBLICATIONS: publication_columns(len(space.paths), is_encrypted)}
    kept = {ACKS, REFUSALS, NOTICES}
    for topic, schema in columns.items():
        keep = options.keep if topic in kept else "read"
        pipeline.topic(topic, schema, keep, external=topic == REQUESTS)
    pipeline.sliced(
        REQUESTS,
        (SUBSCRIPTIONS, PUBLICATIONS, REFUSALS),
        key="lane",
        slices=options.access_slices,
        name=ACCESS,
        max_replicas=options.max_replicas,
        replicas=options.replicas,
    )(AccessPoint(make_check(space)))
    layout = SubscriptionLayout(
        paths=space.paths, is_encrypted=is_encrypted, backend=options.backend
    )
    pipeline.sliced(
        (SUBSCRIPTIONS, PUBLICATIONS),
        (PARTIAL, ACKS),
        key={SUBSCRIPTIONS: "number"},
        broadcast=(PUBLICATIONS,),
        state="version long, content binary",
        slices=options.match_slices,
        name=MATCH,
        max_replicas=options.max_replicas,
        replicas=options.replicas,
    )(MatchPoint(layout))
    pipeline.sliced(
        PARTIAL,
        NOTICES,
        key="publication",
        state_key="slice int",
        state="numbers binary, payload binary, due timestamp",
        slices=options.exit_slices,
        # the lists of a publication are rows of one commit
        whole_commits=True,
        name=EXIT,
        max_replicas=options.max_replicas,
        replicas=options.replicas,
    )(ExitPoint(options.match_slices))
    return pipeline
