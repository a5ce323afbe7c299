"""Serves the metrics of a running loop at /metrics, and shows the run through another view."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.control.loop import Tick
from penstock.engines.events import Event
from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.prometheus.run_metrics import RunMetrics
from penstock.runs.execution import RunView
from penstock.runs.observer import RunObserver, RunProgress, StopRequest
from penstock.runs.preparation import LaunchOptions
from penstock.runs.result import RunResult
from penstock.runs.spark_preparation import PreparedSparkRun


@contextmanager
def serve_metrics(metrics: RunMetrics, port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Serve /metrics until the end of the context; yield the port, which may have been 0."""
    client = import_optional("prometheus_client", "--metrics-port")
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    try:
        server, thread = client.start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        raise InputError(
            "--metrics-port", f"cannot listen at {host} port {port}: {error}"
        ) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class MeteredObserver:
    """Passes everything on to another observer, and ticks to the metrics, too."""

    def __init__(self, observer: RunObserver, metrics: RunMetrics) -> None:
        self._observer, self._metrics = observer, metrics

    def say(self, text: str) -> None:
        """Show a message."""
        self._observer.say(text)

    def show_progress(self, progress: RunProgress) -> None:
        """Show the state between two ticks."""
        self._observer.show_progress(progress)

    def tick(self, tick: Tick) -> None:
        """Show a tick that has ended."""
        self._metrics.tick(tick)
        self._observer.tick(tick)

    def report(self, event: Event) -> None:
        """Show an event of an operator at once."""
        self._observer.report(event)


class MeteredView:
    """Shows a run through another view, and serves its metrics meanwhile."""

    def __init__(self, view: RunView, port: int, host: str = "127.0.0.1") -> None:
        self._view, self._port, self._host = view, port, host

    @contextmanager
    def watch(
        self,
        prepared: PreparedSparkRun,
        directory: Path,
        stop: StopRequest,
        options: LaunchOptions,
    ) -> Iterator[RunObserver]:
        """Show the run and serve its metrics until the end of the context."""
        metrics = RunMetrics(
            pipeline=prepared.pipeline.name,
            policy=prepared.policy.name,
            objective_s=prepared.objective_s,
            budget=prepared.guards.budget,
        )
        with (
            serve_metrics(metrics, self._port, self._host) as port,
            self._view.watch(prepared, directory, stop, options) as observer,
        ):
            observer.say(f"metrics: http://{self._host}:{port}/metrics")
            yield MeteredObserver(observer, metrics)

    def show_finished(self, directory: Path, changed: str) -> None:
        """The directory holds a run that is already finished."""
        self._view.show_finished(directory, changed)

    def show_stopping(self) -> None:
        """The run stops at the end of the batch."""
        self._view.show_stopping()

    def abort(self) -> None:
        """The process ends at once."""
        self._view.abort()

    def show_end(self, prepared: PreparedSparkRun, directory: Path, result: RunResult) -> None:
        """The run is over."""
        self._view.show_end(prepared, directory, result)
