"""Keys and tickets for direct calls: derived, so that every replica makes the same ones and none is kept.

From one secret in the database follows a key for each agent and epoch; epochs are counted by the
database's clock alone (I10). Tickets are made under the key of the epoch in which the ticket's
`lead` ends, so that a fresh one is good for at least that long and for one epoch more at most.
"""

import hashlib
import hmac
import json
from dataclasses import dataclass, field

from dispatcher.identifiers import AgentId
from dispatcher.protocol.direct import DirectKey, DirectKeys, Permit, make_ticket
from dispatcher.registry.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketRules:
    """Seconds: an epoch's length, and a renewal of keys at agents, which should come often in it."""

    epoch_s: float = 3600.0
    renew_s: float = 60.0

    @property
    def epoch_ms(self) -> int:
        """Whole milliseconds, at least one."""
        return max(round(self.epoch_s * 1000), 1)

    @property
    def lead_ms(self) -> int:
        """A quarter of an epoch: how long a fresh ticket is good for at least."""
        return self.epoch_ms // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A ticket's text, and the seconds for which an agent in touch with us surely accepts it."""

    text: str = field(repr=False)
    expires_in_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Everything that follows from the secret at one time of the database, in milliseconds."""

    secret: bytes = field(repr=False)
    now_ms: int
    rules: TicketRules

    def keys(self, agent_id: AgentId) -> DirectKeys:
        """What the agent should hold now."""
        epoch = self.now_ms // self.rules.epoch_ms
        held = [derive_key(self.secret, agent_id, one) for one in (epoch, epoch + 1)]
        renew_in_s = min(self.rules.renew_s, self.rules.epoch_s / 4)
        return DirectKeys(agent_id=agent_id, keys=held, renew_in_s=renew_in_s)

    def ticket(self, permit: Permit) -> Ticket:
        """A ticket for a permit that was found to be granted just now."""
        epoch_ms = self.rules.epoch_ms
        epoch = (self.now_ms + self.rules.lead_ms) // epoch_ms
        key = derive_key(self.secret, AgentId(permit.agent_id), epoch)
        return Ticket(
            text=make_ticket(key, permit), expires_in_s=((epoch + 1) * epoch_ms - self.now_ms) / 1000
        )


def derive_key(secret: bytes, agent_id: AgentId, epoch: int) -> DirectKey:
    """The agent's key of that epoch."""
    derived = hmac.new(secret, json.dumps(["direct key", 1, agent_id, epoch]).encode(), hashlib.sha256)
    return DirectKey(key_id=str(epoch), secret=derived.hexdigest())


def direct_endpoint(agent: Agent) -> str | None:
    """Where callers may call the agent past us; None where it does not allow it or has no address."""
    declaration = agent.declaration
    allows = declaration.direct_fallback and declaration.channel == "http"
    return declaration.endpoint if allows else None
