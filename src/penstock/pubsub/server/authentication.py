"""Authentication: the account of a request by its token, and what it may do."""

from starlette.requests import Request

from penstock.pubsub.server.credentials import Account
from penstock.pubsub.server.problem import ProblemError
from penstock.pubsub.server.service import Service

_CHALLENGE = 'Bearer realm="penstock pubsub"'


def get_service(request: Request) -> Service:
    """Return the service that a request is for."""
    service: Service = request.app.state.service
    return service


def authenticate(request: Request) -> Account:
    """Return the account of the request's token; 401 without a valid one, 429 if too fast."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        hint = "send the header Authorization: Bearer TOKEN; penstock pubsub token makes one"
        headers = {"WWW-Authenticate": _CHALLENGE}
        raise ProblemError(
            401, "a token is needed", place="Authorization", hint=hint, headers=headers
        )
    service = get_service(request)
    account = service.tokens.authenticate(text.strip())
    if account is None:
        hint = "it was revoked, or another service made it; penstock pubsub token makes one"
        headers = {"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'}
        raise ProblemError(
            401, "the token is not valid", place="Authorization", hint=hint, headers=headers
        )
    service.check_rate(account, "requests")
    return account


def authenticate_publisher(request: Request) -> Account:
    """Return an account that may publish; 403 for another one."""
    account = authenticate(request)
    if not account.can_publish:
        raise _missing_right(account, "publish", "publisher")
    return account


def authenticate_subscriber(request: Request) -> Account:
    """Return an account that may subscribe; 403 for another one."""
    account = authenticate(request)
    if not account.can_subscribe:
        raise _missing_right(account, "subscribe", "subscriber")
    return account


def _missing_right(account: Account, action: str, role: str) -> ProblemError:
    problem = f"the token of {account.name} does not allow to {action}"
    return ProblemError(
        403, problem, place="Authorization", hint=f"use a token with the role {role} or both"
    )
