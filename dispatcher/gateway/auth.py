"""Who may use which route: one guard, declared on every router that needs a key.

Development mode is the access book's matter: it answers an empty key with its one identity.
"""

from fastapi.security import HTTPBearer
from starlette.requests import Request

from dispatcher.errors import RequestError
from dispatcher.gateway.fields import header_values
from dispatcher.gateway.headers import read_bearer
from dispatcher.gateway.parts import AccessControl
from dispatcher.identifiers import AgentId
from dispatcher.registry.access import Identity, Role


class Guard(HTTPBearer):
    """Lets holders of certain roles pass and notes who they are for `identity_of`."""

    def __init__(self, access: AccessControl, *roles: Role) -> None:
        super().__init__(scheme_name="key", description="A key as `ard_…`, made by `dispatcher keys create`.")
        self._access = access
        self._roles = frozenset(roles)

    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        """Raises RequestError `unauthenticated`, `forbidden` or `key_in_query`."""
        if b"ard_" in request.scope["query_string"]:
            raise RequestError("Query strings end up in logs; revoke that key.", code="key_in_query")
        identity = await self._access.authenticate(read_bearer(header_values(request, "authorization")))
        if identity is None:
            raise RequestError("Send a valid key as a bearer token.", code="unauthenticated")
        if identity.role not in self._roles and not identity.every_role:
            raise RequestError("This key has another role.", code="forbidden")
        request.scope.setdefault("state", {})["identity"] = identity


def identity_of(request: Request) -> Identity:
    """Whom the guard let pass."""
    identity: Identity = request.scope["state"]["identity"]
    return identity


def sending_agent(identity: Identity) -> AgentId | None:
    """The agent that this key is of; None where it may speak for any."""
    is_one = identity.role is Role.AGENT and not identity.every_role
    return AgentId(identity.subject) if is_one else None


def check_agent(identity: Identity, agent_id: AgentId) -> None:
    """An agent's key is good for that agent only; raises RequestError `forbidden`."""
    if sending_agent(identity) not in {None, agent_id}:
        raise RequestError("This key belongs to another agent.", code="forbidden")
