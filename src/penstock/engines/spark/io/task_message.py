"""What a task of the sink reports to the driver."""

from dataclasses import dataclass, field

from pyspark.sql.datasource import WriterCommitMessage

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.microbatch.event_counts import Events
from penstock.state.state_files import StateFile
from penstock.state.version import FileMerge
from penstock.topics.embedded.segment import Segment


@dataclass
class TaskMessage(WriterCommitMessage):
    """The result of a task that has written its segments."""

    task: TaskRecord
    events: Events = ()
    segments: dict[str, Segment] = field(default_factory=dict)
    #: State of a sliced operator.
    state_files: tuple[StateFile, ...] = ()
    merged: tuple[FileMerge, ...] = ()
