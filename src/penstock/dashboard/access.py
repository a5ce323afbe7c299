"""Who may use the dashboard: checks Host, Origin, token and size of every request, as ASGI.

A page of another site cannot read answers, nor ask for anything: its Origin is refused, and a name
that it points to this machine (DNS rebinding) is an unknown Host. Answers forbid inline scripts
and any other server, so a name in a journal cannot become code.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_QUERY_BYTES, MAX_PATH_BYTES, MAX_BODY_BYTES = 4096, 1024, 4096
SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """What a server accepts."""

    token: str
    #: Names under which it may be asked, without a port; numeric addresses too if it is open.
    hosts: frozenset[str]
    #: Whether it listens to other machines: then everything needs the token.
    is_open: bool = False

    def allows_host(self, host: str) -> bool:
        """Whether a Host header names this server.

        >>> rules = AccessRules(token="t", hosts=frozenset({"localhost", "127.0.0.1"}))
        >>> rules.allows_host("localhost:8750"), rules.allows_host("evil.example")
        (True, False)
        """
        name = urlsplit(f"//{host}").hostname if host else None
        if name is None:
            return False
        return name in self.hosts or (self.is_open and _is_address(name))

    def allows_token(self, authorization: str) -> bool:
        """Whether a header has the token, compared in constant time."""
        scheme, _, given = authorization.partition(" ")
        is_bearer = scheme.lower() == "bearer"
        return is_bearer and hmac.compare_digest(given.strip().encode(), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class AccessCheck:
    """Refuses requests that break the rules, and adds security headers to all answers."""

    def __init__(self, application: Application, rules: AccessRules) -> None:
        self._application, self._rules = application, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_safely(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._application(scope, receive, send_safely)
            return
        status, text = refusal
        await send_safely(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-type", b"text/plain; charset=utf-8")],
            }
        )
        await send_safely({"type": "http.response.body", "body": text.encode()})

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the text of a refusal; None if the request is allowed."""
        headers = _headers(scope)
        if len(scope.get("query_string", b"")) > MAX_QUERY_BYTES:
            return 414, "the query is too long"
        if len(scope.get("raw_path") or scope["path"].encode()) > MAX_PATH_BYTES:
            return 414, "the path is too long"
        if not self._rules.allows_host(headers.get("host", "")):
            return 421, "this server is not known under that name; see --allow-host"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return 403, "requests of other sites are refused"
        is_write = scope["method"] not in ("GET", "HEAD")
        is_data = scope["path"].startswith("/api/")
        needs_token = is_data and (is_write or self._rules.is_open)
        if needs_token and not self._rules.allows_token(headers.get("authorization", "")):
            return 401, "the token is missing or wrong; penstock dashboard prints it"
        if is_write and not is_data:
            return 405, "only GET"
        length = headers.get("content-length", "0")
        if is_write and (not length.isdecimal() or int(length) > MAX_BODY_BYTES):
            return 413, "the request is too large"
        return None


def _headers(scope: Scope) -> Mapping[str, str]:
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
