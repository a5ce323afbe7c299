"""The public names, for type checkers and editors."""

from penstock.api import kafka as kafka
from penstock.api.attachment import Attachment as Attachment
from penstock.api.attachment import attach as attach
from penstock.api.comparison import Comparison as Comparison
from penstock.api.comparison import compare as compare
from penstock.api.decision import decide as decide
from penstock.api.elastic import elastic as elastic
from penstock.api.execution import run as run
from penstock.api.run_handle import Run as Run
from penstock.api.run_handle import open_run as open_run
from penstock.api.simulation import simulate as simulate
from penstock.core.decision import Decision as Decision
from penstock.core.decision import Target as Target
from penstock.core.decision import keep as keep
from penstock.core.params import Params as Params
from penstock.core.params import param as param
from penstock.core.policy import Applied as Applied
from penstock.core.policy import History as History
from penstock.core.policy import Policy as Policy
from penstock.core.policy import PolicyStyle as PolicyStyle
from penstock.core.policy import RunFacts as RunFacts
from penstock.core.policy import each_operator as each_operator
from penstock.core.reasons import Reason as Reason
from penstock.core.snapshot import OperatorSnapshot as OperatorSnapshot
from penstock.core.snapshot import Snapshot as Snapshot
from penstock.engines.attached.restart.elastic_query import ElasticQuery as ElasticQuery
from penstock.errors import InputError as InputError
from penstock.errors import NotReadyError as NotReadyError
from penstock.errors import PenstockError as PenstockError
from penstock.errors import RunError as RunError
from penstock.pipelines.host_declaration import Hosts as Hosts
from penstock.pipelines.pipeline import Pipeline as Pipeline
from penstock.pipelines.stateful import counts as counts
from penstock.pipelines.stateful import distinct as distinct
from penstock.pipelines.stateful import join as join
from penstock.pipelines.stateful import sessions as sessions
from penstock.pipelines.stateful import top as top
from penstock.pipelines.stateful import try_batches as try_batches
from penstock.pipelines.stateful import windows as windows
from penstock.runs.result import RunResult as RunResult
from penstock.state.handle import State as State
from penstock.workloads.workload import Workload as Workload

__version__: str
