"""Tickets for calls past the dispatcher: what an agent can check by itself, while nobody else is there.

A ticket says that the dispatcher found one caller's grant for one capability and let it call one agent.
It is an HMAC-SHA256 under a key that only the dispatcher and that agent have, and dies with the key.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dispatcher.protocol.declaration import Name

TICKET_HEADER = "Direct-Ticket"
_TICKET = re.compile(r"([0-9a-z]{1,32})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Who may have what done by whom."""

    caller: str
    capability: str
    agent_id: str


class DirectKey(BaseModel):
    """One of an agent's keys; `secret` is hexadecimal."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    key_id: Annotated[str, Field(pattern=r"^[0-9a-z]{1,32}$")]
    secret: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]


class DirectKeys(BaseModel):
    """The keys under which an agent accepts tickets: those of this epoch and of the next.

    They replace all that it had before; it should ask again after `renew_in_s` seconds.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    agent_id: Name
    keys: Annotated[list[DirectKey], Field(min_length=1, max_length=4)]
    renew_in_s: Annotated[float, Field(gt=0)]


def make_ticket(key: DirectKey, permit: Permit) -> str:
    """The ticket for a permit: visible ASCII, 66 to 97 characters."""
    return f"{key.key_id}.{_mac(key, permit)}"


def is_valid(ticket: str, permit: Permit, keys: Mapping[str, DirectKey]) -> bool:
    """Whether the ticket was made for exactly this permit, under one of the keys by their id."""
    found = _TICKET.fullmatch(ticket)
    key = keys.get(found[1]) if found else None
    return found is not None and key is not None and hmac.compare_digest(found[2], _mac(key, permit))


def _mac(key: DirectKey, permit: Permit) -> str:
    # JSON can be read in one way only: no two permits have one text.
    signed = json.dumps(["ticket", 1, key.key_id, permit.agent_id, permit.caller, permit.capability])
    return hmac.new(bytes.fromhex(key.secret), signed.encode(), hashlib.sha256).hexdigest()
