"""The verbs `serve` and `token` of `penstock pubsub`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import add_pairs, parse_pairs
from penstock.cli.subcommands import add_verb
from penstock.control.registry import host_policy
from penstock.errors import InputError
from penstock.extras import check_optional

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from penstock.pubsub.pipeline import PubSubOptions
    from penstock.pubsub.server.http_server import HttpServer
    from penstock.pubsub.server.limits import ServerLimits
    from penstock.pubsub.server.token_store import TokenRecord
    from penstock.pubsub.spaces.space import Space

LOOPBACK = "127.0.0.1"
_LOOPBACK_NAMES = (LOOPBACK, "::1", "localhost")
#: What serving imports.
_PACKAGES = ("starlette", "uvicorn", "sse_starlette")

SERVE_EXAMPLES = """\
examples:
  penstock pubsub serve --dir ticks --space ticks.toml --local    the first start
  penstock pubsub token --dir ticks --name alice --role both      a token for alice
  penstock pubsub serve --dir ticks --local --port 8080           a later start
  penstock pubsub serve --dir ticks --space ticks.toml            with the pipeline on Spark
  penstock pubsub serve --dir ticks --space ticks.toml --hosts 1:8 --share 0.25
  penstock pubsub serve --dir ticks --limit max_subscriptions=100 --limit publications_per_s=50
  penstock pubsub serve --dir ticks --host 0.0.0.0                other machines, too

The directory keeps the space, hashes of tokens, subscriptions, and what the engine
stores. The space is declared at the first start and never changes. The pipeline
runs on Spark in DIR/run: penstock status DIR/run shows it. With --local everything
runs in this process, without Spark: to try it, and for small loads.

Every request needs a token. The server listens on loopback unless --host names
another address. It does not encrypt connections: use a proxy with TLS before it.

Stop it with Ctrl-C or SIGTERM. Accepted requests are durable, also after a kill;
subscribers reconnect with their last event and miss nothing.
"""
TOKEN_EXAMPLES = """\
examples:
  penstock pubsub token --dir ticks --name alice --role both > alice.token
  penstock pubsub token --dir ticks --name feed --role publisher
  penstock pubsub token --dir ticks --list
  penstock pubsub token --dir ticks --revoke alice

The token is printed once; the directory keeps its hash only. A second token for
the same name is valid beside the first one, and sees the same subscriptions.
A running server knows new and revoked tokens at once.
"""


def add_serve_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verbs with their options."""
    about = "serve publish/subscribe over HTTP, with a page for the browser"
    parser = add_verb(verbs, "serve", about, SERVE_EXAMPLES, run_serve)
    add = parser.add_argument
    add("--dir", type=Path, required=True, metavar="DIR", help="directory of the service")
    about = "declaration of the space, TOML; for the first start"
    add("--space", type=Path, metavar="FILE", help=about)
    about = "address to listen on (default: %(default)s)"
    add("--host", default=LOOPBACK, metavar="HOST", help=about)
    about = "port to listen on, 0 for a free one (default: %(default)s)"
    add("--port", type=int, default=8080, metavar="PORT", help=about)
    add("--local", action="store_true", help="without Spark, in this process")
    about = "slices of access, match and exit points, at the first start (default: 8,16,8)"
    add("--slices", metavar="A,M,E", help=about)
    about = "hosts that share all slices, START:MOST, at the first start (default: none)"
    add("--hosts", metavar="A:B", help=about)
    about = "part of a core that a host has, emulated (default: %(default)s)"
    add("--share", type=float, default=1.0, metavar="S", help=about)
    add("--policy", metavar="NAME", help="policy of the run, see penstock policies")
    add("--batch", type=float, metavar="S", help="target length of a batch of the run")
    add_pairs(parser, "--limit", "a limit of the server; GET /space shows all")
    about = "make tokens for publishers and subscribers, list or revoke them"
    add = add_verb(verbs, "token", about, TOKEN_EXAMPLES, run_token).add_argument
    add("--dir", type=Path, required=True, metavar="DIR", help="directory of the service")
    add("--name", metavar="NAME", help="account that the token is for")
    about = "what the token allows (default: %(default)s)"
    add("--role", choices=("publisher", "subscriber", "both"), default="both", help=about)
    add("--list", action="store_true", help="list tokens instead")
    add("--revoke", metavar="NAME", help="revoke all tokens of an account instead")


# Each verb imports what it needs: Arrow and Starlette take long to load.


def run_serve(args: argparse.Namespace) -> int:
    """Serve until the process gets SIGINT or SIGTERM."""
    for package in _PACKAGES:
        check_optional(package, "penstock pubsub serve", "pubsub")
    if not 0 <= args.port <= 65535:
        raise InputError("--port", f"must be from 0 to 65535, got {args.port}")

    from penstock.pubsub.server.limits import ServerLimits  # noqa: PLC0415
    from penstock.pubsub.server.service_directory import open_directory  # noqa: PLC0415

    limits = ServerLimits.parse(parse_pairs(args.limit, "--limit"), "limit")
    has_tokens = bool(_read_tokens(args.dir))
    with (
        open_directory(args.dir, args.space) as space,
        _open_server(args, space, limits) as server,
    ):
        if args.json:
            print(json.dumps({"url": server.url}), flush=True)
        else:
            print(server.url, flush=True)
        _print_hints(args, has_tokens)
        server.serve_forever()
    return 0


def _print_hints(args: argparse.Namespace, has_tokens: bool) -> None:
    if not has_tokens:
        command = f"penstock pubsub token --dir {args.dir} --name NAME"
        print(f"there is no token yet; {command} makes one", file=sys.stderr)
    if args.host not in _LOOPBACK_NAMES:
        text = "other machines can connect, and connections are not encrypted: use a proxy with TLS"
        print(f"warning: {text}", file=sys.stderr)
    print("serving; stop with Ctrl-C", file=sys.stderr, flush=True)


def _read_tokens(directory: Path) -> "list[TokenRecord]":
    """Read all tokens; a damaged database is found before anything starts."""
    from penstock.pubsub.server.database import open_database  # noqa: PLC0415
    from penstock.pubsub.server.token_store import TokenStore  # noqa: PLC0415

    connection = open_database(directory)
    try:
        return TokenStore(connection).read_all()
    finally:
        connection.close()


def _open_server(
    args: argparse.Namespace,
    space: "Space",
    limits: "ServerLimits",
) -> "AbstractContextManager[HttpServer]":
    if args.local:
        for name in ("slices", "hosts", "policy", "batch"):
            if getattr(args, name) is not None:
                raise InputError(f"--{name}", "needs a run on Spark, and --local has none")
        from penstock.pubsub.server.local_service import open_local_server  # noqa: PLC0415

        return open_local_server(space, args.dir, host=args.host, port=args.port, limits=limits)
    from penstock.engines.spark.cluster.masters import check_java  # noqa: PLC0415
    from penstock.pubsub.server.spark_service import open_spark_server  # noqa: PLC0415

    check_java()
    policy = args.policy or (host_policy() if args.hosts is not None else None)
    run_options: list[str] = []
    for name, value in (("policy", policy), ("batch", args.batch)):
        if value is not None:
            run_options += [f"--{name}", str(value)]
    return open_spark_server(
        space,
        args.dir,
        options=_read_options(args),
        run_options=tuple(run_options),
        host=args.host,
        port=args.port,
        limits=limits,
    )


def _read_options(args: argparse.Namespace) -> "PubSubOptions | None":
    from penstock.pipelines.host_declaration import Hosts  # noqa: PLC0415
    from penstock.pubsub.pipeline import PubSubOptions  # noqa: PLC0415

    if args.slices is None and args.hosts is None:
        return None
    access, match, exit = _read_numbers(args.slices or "8,16,8", "--slices", ",", 3)
    hosts = None
    if args.hosts is not None:
        start, most = _read_numbers(args.hosts, "--hosts", ":", 2)
        hosts = Hosts(start=start, most=most, share=args.share)
    return PubSubOptions(access_slices=access, match_slices=match, exit_slices=exit, hosts=hosts)


def _read_numbers(text: str, option: str, sign: str, count: int) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(sign)]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        example = sign.join(["8", "16", "8"][:count])
        problem = f"must be {count} whole numbers with {sign!r} between them, got {text!r}"
        raise InputError(option, problem, f"such as {example}")
    return numbers


def run_token(args: argparse.Namespace) -> int:
    """Make a token and print it; it is not shown again."""
    from penstock.pubsub.server.credentials import Role  # noqa: PLC0415
    from penstock.pubsub.server.database import open_database  # noqa: PLC0415
    from penstock.pubsub.server.token_store import TokenStore  # noqa: PLC0415

    if sum((args.name is not None, args.list, args.revoke is not None)) != 1:
        raise InputError("token", "needs one of --name, --list and --revoke")
    connection = open_database(args.dir)
    try:
        store = TokenStore(connection)
        if args.list:
            _print_tokens(store.read_all(), args.json)
        elif args.revoke is not None:
            count = store.revoke(args.revoke)
            if not count:
                raise InputError("--revoke", f"{args.revoke!r} has no token")
            print(json.dumps({"revoked": count}) if args.json else f"revoked {count}")
        else:
            token = str(store.create(args.name, Role(args.role)))
            fields = {"name": args.name, "role": args.role, "token": token}
            print(json.dumps(fields) if args.json else token)
            if not args.json:
                print("keep it; it is stored as a hash and not shown again", file=sys.stderr)
    finally:
        connection.close()
    return 0


def _print_tokens(records: "list[TokenRecord]", is_json: bool) -> None:
    rows = [
        {"id": each.id, "name": each.name, "role": each.role.value, "created": each.created}
        for each in records
    ]
    if is_json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(f"{row['name']:<20} {row['role']:<11} {row['created']}  {row['id']}")
