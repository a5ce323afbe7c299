"""A service whose engine is the pipeline on Spark, in a run directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.pubsub.pipeline import PubSubOptions
from penstock.pubsub.server.app import make_app
from penstock.pubsub.server.engine_status import RunDirectoryStatus
from penstock.pubsub.server.http_server import LOOPBACK, HttpServer
from penstock.pubsub.server.limits import ServerLimits
from penstock.pubsub.server.spark_engine import open_spark_engine
from penstock.pubsub.spaces.space import Space


@contextmanager
def open_spark_server(
    space: Space,
    directory: Path,
    *,
    options: PubSubOptions | None = None,
    run_options: tuple[str, ...] = (),
    host: str = LOOPBACK,
    port: int = 0,
    limits: ServerLimits | None = None,
) -> Iterator[HttpServer]:
    """Yield a server that is ready to serve; the run starts beside it."""
    with open_spark_engine(space, directory, options=options, run_options=run_options) as engine:
        status = RunDirectoryStatus(engine.run, lambda: engine.process.problem)
        yield HttpServer(make_app(engine.broker, directory, limits, status), host, port)
