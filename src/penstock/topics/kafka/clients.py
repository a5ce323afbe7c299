"""Clients of confluent-kafka: made with settings that are resolved here, errors as our own."""

import logging
from collections.abc import Callable
from typing import Any

from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings

#: librdkafka logs here; silent unless the program configures logging.
LOG = logging.getLogger("penstock.kafka")
#: Seconds to wait for one answer of a broker.
REQUEST_S = 5.0
#: A reader that fetches small ranges quickly; see docs/kafka.md for the figures.
READER = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "queued.min.messages": "10000",
    "fetch.queue.backoff.ms": "1",
    "fetch.wait.max.ms": "5",
}
_REFUSED = (
    *("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
    *("GROUP_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    *("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "_SSL"),
)


def load_client(purpose: str = "Kafka") -> Any:
    """Import confluent-kafka; `InputError` names the extra if it is missing."""
    return import_optional("confluent_kafka", purpose)


def make_config(address: KafkaAddress, settings: ClientSettings, **own: Any) -> dict[str, Any]:
    """Return the settings of one client; underscores of `own` stand for dots."""
    config: dict[str, Any] = {"client.id": "penstock", **settings.resolve()}
    config |= {name.replace("_", "."): value for name, value in own.items()}
    return config | {"bootstrap.servers": address.bootstrap, "logger": LOG}


def make_consumer(
    address: KafkaAddress,
    settings: ClientSettings,
    isolation: str,
    group: str = "penstock",
    on_error: Callable[[Any], None] | None = None,
    **own: Any,
) -> Any:
    """Return a consumer that reads committed messages only, or all."""
    config = make_config(address, settings, isolation_level=isolation, group_id=group, **own)
    if on_error is not None:
        config["error_cb"] = on_error
    return _make(load_client().Consumer, {**READER, **config})


def make_producer(
    address: KafkaAddress,
    settings: ClientSettings,
    on_error: Callable[[Any], None] | None = None,
    **own: Any,
) -> Any:
    """Return a producer; keys go to the partitions that Java clients choose."""
    config = make_config(address, settings, **own)
    if on_error is not None:
        config["error_cb"] = on_error
    return _make(load_client().Producer, {"partitioner": "murmur2_random", **config})


def make_admin(address: KafkaAddress, settings: ClientSettings) -> Any:
    """Return a client for topics and offsets."""
    load_client()
    admin = import_optional("confluent_kafka.admin", "Kafka")
    return _make(admin.AdminClient, make_config(address, settings))


def _make(kind: Any, config: dict[str, Any]) -> Any:
    try:
        return kind(config)
    except (load_client().KafkaException, TypeError, ValueError) as error:
        # such as an unknown setting, or a file that is missing; librdkafka repeats no secret
        problem = getattr(error.args[0], "str", error.__str__)()
        hint = "settings are those of librdkafka"
        raise InputError("settings", problem, hint) from None


def translate_error(error: Any, address: KafkaAddress, *, is_known: bool = False) -> Exception:
    """Return an error of confluent-kafka as `InputError`, or as `ConnectionError` to retry.

    A topic that `is_known` exists, although a broker may not know it yet.
    """
    reason = error.args[0] if isinstance(error, BaseException) and error.args else error
    name, text = getattr(reason, "name", lambda: "")(), getattr(reason, "str", lambda: str(error))()
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION") and not is_known:
        return missing_topic(address)
    if name in _REFUSED:
        problem, hint = f"refused by the broker: {text}", "check settings and access rights"
        return InputError(f"topic {address.topic}", problem, hint)
    return ConnectionError(f"Kafka at {address.bootstrap}, topic {address.topic}: {text or name}")


def missing_topic(address: KafkaAddress) -> InputError:
    """Return the error for a topic that the broker does not have."""
    hint = f"create it, or correct the name; brokers: {address.bootstrap}"
    return InputError(f"topic {address.topic}", "does not exist", hint)
