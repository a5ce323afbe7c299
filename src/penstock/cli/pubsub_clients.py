"""The verbs `publish` and `subscribe` of `penstock pubsub`: the client for the shell."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.subcommands import add_verb
from penstock.errors import InputError
from penstock.extras import check_optional
from penstock.files.text import read_text

if TYPE_CHECKING:
    from penstock.pubsub.client import Client

DEFAULT_URL = "http://127.0.0.1:8080"
#: Environment variables for the address and the token.
URL_VARIABLE, TOKEN_VARIABLE = "PENSTOCK_PUBSUB_URL", "PENSTOCK_PUBSUB_TOKEN"
_MAX_SHOWN = 5

_TOKEN_TEXT = """\
The token comes from --token-file or the environment variable
PENSTOCK_PUBSUB_TOKEN, because other users can see the arguments of a command. The
address comes from --url or PENSTOCK_PUBSUB_URL. In an encrypted space --key names
the key file, which never leaves this machine.
"""
PUBLISH_EXAMPLES = f"""\
examples:
  penstock pubsub publish '{{"symbol": "ACME", "price": 12.5}}'
  penstock pubsub publish < events.jsonl                one JSON object per line
  penstock pubsub publish --key ticks.key '{{"symbol": "ACME", "price": 12.5}}'

{_TOKEN_TEXT}
exit codes:
  0  all events are durable
  1  the service refused some, or cannot be reached
  2  wrong options or events
"""
SUBSCRIBE_EXAMPLES = f"""\
examples:
  penstock pubsub subscribe "price > 10 AND symbol = 'ACME'"
  penstock pubsub subscribe "price > 10" --count 5 | jq .price
  penstock pubsub subscribe "price > 10" --id big --keep          stays when this ends
  penstock pubsub subscribe "price > 10" --id big --after 41      continues behind event 41

Prints one event per line as JSON; with --json together with its publication
number. Reconnects by itself. Without --keep the subscription ends with the command.

{_TOKEN_TEXT}"""


def add_client_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verbs with their options."""
    about = "publish events"
    parser = add_verb(verbs, "publish", about, PUBLISH_EXAMPLES, run_publish)
    about = "JSON objects (default: lines of stdin)"
    parser.add_argument("event", nargs="*", metavar="EVENT", help=about)
    _add_connection(parser)
    about = "subscribe with a predicate and print matching events"
    parser = add_verb(verbs, "subscribe", about, SUBSCRIBE_EXAMPLES, run_subscribe)
    add = parser.add_argument
    add("predicate", metavar="PREDICATE", help="such as \"price > 10 AND symbol = 'ACME'\"")
    add("--id", metavar="ID", help="id of the subscription (default: chosen by the service)")
    add("--count", type=int, metavar="N", help="end after so many events")
    add("--keep", action="store_true", help="do not remove the subscription at the end")
    about = "continue a subscription that exists, behind this publication; implies --keep"
    add("--after", type=int, metavar="N", help=about)
    _add_connection(parser)


def _add_connection(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    url = os.environ.get(URL_VARIABLE, DEFAULT_URL)
    add("--url", default=url, metavar="URL", help="address of the service (default: %(default)s)")
    add("--token-file", type=Path, metavar="FILE", help="file with the token")
    add("--key", type=Path, metavar="FILE", help="key file of an encrypted space")


def run_publish(args: argparse.Namespace) -> int:
    """Publish events of arguments or lines of stdin."""
    events = _parse_events(args.event or sys.stdin, "EVENT" if args.event else "line")
    with _open_client(args, "penstock pubsub publish") as client:
        result = client.publish_many(events)
    shown = list(result.refused.items())[:_MAX_SHOWN]
    if args.json:
        refused = {str(place + 1): dict(body) for place, body in result.refused.items()}
        print(json.dumps({"accepted": result.accepted, "refused": refused}))
    else:
        print(f"accepted {result.accepted}, refused {len(result.refused)}")
    for place, body in shown:
        print(f"event {place + 1}: {body['place']}: {body['error']}", file=sys.stderr)
    return 1 if result.refused else 0


def run_subscribe(args: argparse.Namespace) -> int:
    """Print matching events until the command is interrupted."""
    if args.count is not None and args.count < 1:
        raise InputError("--count", f"must be at least 1, got {args.count}")
    if args.after is not None and args.id is None:
        raise InputError("--after", "needs --id of the subscription to continue")
    with _open_client(args, "penstock pubsub subscribe") as client:
        if args.after is None:
            subscription = client.subscribe(args.predicate, args.id)
        else:
            subscription = client.resume(args.id, args.predicate, args.after)
        print(f"subscribed as {subscription.id}", file=sys.stderr, flush=True)
        try:
            for count, event in enumerate(subscription, 1):
                fields = {"publication": event.publication, "event": event.content}
                print(json.dumps(fields if args.json else event.content), flush=True)
                if count == args.count:
                    break
        finally:
            if not args.keep and args.after is None:
                client.unsubscribe(subscription.id)
    return 0


def _open_client(args: argparse.Namespace, purpose: str) -> "Client":
    check_optional("httpx", purpose)
    from penstock.pubsub.client import Client  # noqa: PLC0415

    if args.token_file is not None:
        token = read_text(args.token_file).strip()
    else:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        hint = "penstock pubsub token makes one"
        raise InputError("--token-file", f"is missing, and {TOKEN_VARIABLE} is not set", hint)
    return Client(args.url, token, args.key)


def _parse_events(texts: Any, place: str) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            event = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place} {number}", f"is not JSON: {error}") from None
        if not isinstance(event, dict):
            raise InputError(f"{place} {number}", "must be a JSON object")
        yield event
