"""A Kafka broker for tests: one process without ZooKeeper, its jars fetched by Maven once.

Run as a program, it starts a broker, prints its address and stops it on Ctrl-C:

    python -m tests.tools.kafka_broker
"""

import base64
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType

POM = Path(__file__).parent / "kafka" / "pom.xml"
#: Jars stay here between runs.
JARS = Path(os.environ.get("PENSTOCK_KAFKA_JARS", Path.home() / ".cache" / "penstock" / "kafka"))
MAX_START_S = 240.0
#: Ports that the system gives to no client: one that tries a port of a dead broker again and
#: again could get that port itself, and keep the broker from coming back.
_PORTS = range(20_000, 32_000)
#: Who may log in at the second port.
USER, PASSWORD = "penstock", "very-secret-word"
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class BrokerMissingError(Exception):
    """No broker can be had here; the text is the reason."""


def fetch_jars() -> Path:
    """Return the directory with the jars of a broker, or raise `BrokerMissingError`."""
    if shutil.which("java") is None:
        raise BrokerMissingError("no Java is installed")
    done = JARS / "complete"
    if done.exists():
        return JARS
    if shutil.which("mvn") is None:
        raise BrokerMissingError(f"no Maven is installed, and no jars are in {JARS}")
    JARS.mkdir(parents=True, exist_ok=True)
    command = [
        *("mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"),
        *(f"-DoutputDirectory={JARS}", "-DincludeScope=runtime"),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (subprocess.SubprocessError, OSError) as error:
        raise BrokerMissingError(f"Maven cannot fetch the jars of Kafka: {error}") from None
    done.touch()
    return JARS


def free_port() -> int:
    """Return a port of this machine that nobody uses."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class KafkaBroker:
    """One broker with its data in a directory; it can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._jars, self._directory = fetch_jars(), directory
        self.port, self.login_port, self._control_port = free_port(), free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = directory / "server.properties"
        directory.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(self._settings(), encoding="utf-8")
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._run_tool("StorageTool", "format", "-t", cluster, "-c", str(self._properties))

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def url(self, topic: str) -> str:
        """Return the address of a topic."""
        return f"kafka://{self.address}/{topic}"

    def start(self) -> "KafkaBroker":
        """Start it and wait until it answers."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java(), "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        deadline = time.monotonic() + MAX_START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start, see {self._directory / 'log'}")
            time.sleep(0.1)
        return self

    def kill(self) -> None:
        """Kill it, as a power failure of its process would."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> "KafkaBroker":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException  # noqa: PLC0415  (an extra)
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        quiet = {"log_level": 0, "bootstrap.servers": self.address}
        try:
            return bool(AdminClient(quiet).list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _java(self) -> list[str]:
        return ["java", *_OPTIONS, "-cp", f"{self._jars}/*"]

    def _run_tool(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [*self._java(), f"kafka.tools.{name}", *arguments], check=True, capture_output=True
        )

    def _settings(self) -> str:
        local, control = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._control_port}"
        login = f"127.0.0.1:{self.login_port}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{control}
listeners=PLAINTEXT://{local},LOGIN://{login},CONTROLLER://{control}
advertised.listeners=PLAINTEXT://{local},LOGIN://{login}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
listener.name.login.sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config={module} required user_{USER}="{PASSWORD}";
log.dirs={self._directory / "data"}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.retention.check.interval.ms=1000
group.initial.rebalance.delay.ms=0
"""


def main() -> None:
    """Run a broker until Ctrl-C."""
    with tempfile.TemporaryDirectory() as home, KafkaBroker(Path(home)) as broker:
        print(broker.address, flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
