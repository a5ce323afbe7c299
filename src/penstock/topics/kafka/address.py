"""The address of a Kafka topic: `kafka://host:port[,host:port]/topic`. Pure."""

import re
from dataclasses import dataclass

from penstock.errors import InputError

SCHEME = "kafka://"
HINT = "write kafka://host:port/topic; several brokers as host:port,host:port"
#: What Kafka allows as the name of a topic.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """The brokers to begin with, and a topic or the prefix of several.

    >>> address = parse_address("kafka://a:9092,b:9093/orders")
    >>> address.servers, address.topic
    (('a:9092', 'b:9093'), 'orders')
    >>> print(address)
    kafka://a:9092,b:9093/orders
    """

    servers: tuple[str, ...]
    topic: str

    @property
    def bootstrap(self) -> str:
        """The brokers as clients want them."""
        return ",".join(self.servers)

    def __str__(self) -> str:
        return f"{SCHEME}{self.bootstrap}/{self.topic}"


def is_kafka_address(text: str) -> bool:
    """Whether a text is meant as the address of a Kafka topic."""
    return text.lower().startswith("kafka:")


def parse_address(text: str, field: str = "address") -> KafkaAddress:
    """Parse an address, or raise `InputError`.

    >>> parse_address("kafka://broker/orders")
    Traceback (most recent call last):
    ...
    penstock.errors.InputError: address: broker 'broker' has no port: 'kafka://broker/orders'
    hint: write kafka://host:port/topic; several brokers as host:port,host:port
    """
    if not isinstance(text, str):
        raise InputError(field, f"must be a text, got {type(text).__name__}", HINT)
    if "@" in text:
        # not repeated here: the text may hold a password
        hint = "give user and password as settings, see docs/kafka.md"
        raise InputError(field, "must not contain '@', because addresses are logged", hint)
    if not text.startswith(SCHEME):
        raise InputError(field, f"must begin with {SCHEME}, got {text!r}", HINT)
    servers, _, topic = text.removeprefix(SCHEME).partition("/")
    names = tuple(_parse_server(server, text, field) for server in servers.split(","))
    return KafkaAddress(servers=names, topic=_parse_topic(topic, text, field))


def _parse_server(server: str, text: str, field: str) -> str:
    match = _SERVER.fullmatch(server)
    if match is not None and 0 < int(match["port"]) <= MAX_PORT:
        return server
    if not server:
        problem = "has no broker"
    elif ":" not in server:
        problem = f"broker {server!r} has no port"
    else:
        problem = f"broker {server!r} is not host:port"
    raise InputError(field, f"{problem}: {text!r}", HINT)


def _parse_topic(topic: str, text: str, field: str) -> str:
    if _TOPIC.fullmatch(topic) and topic not in (".", ".."):
        return topic
    if not topic:
        raise InputError(field, f"has no topic: {text!r}", HINT)
    hint = "names of topics have up to 249 letters, digits, '.', '_' and '-'"
    raise InputError(field, f"topic {topic!r} is not a name that Kafka allows", hint)
