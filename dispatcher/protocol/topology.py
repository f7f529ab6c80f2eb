"""Names and arguments of every exchange and queue, in one place.

Arguments can't be changed in place (RabbitMQ answers 406), so the version is part of each
queue's name: change arguments only together with `QUEUE_VERSION`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dispatcher.identifiers import AgentId, InstanceId, ReplicaId

QUEUE_VERSION = "v1"
DELIVERY_LIMIT = 4
"""Broker redeliveries before a task is dead-lettered: a net above our own three attempts."""
MAX_QUEUE_LENGTH = 100_000
DEAD_LETTER_TTL_MS = 7 * 24 * 3600 * 1000
PEOPLE_DELIVERY_LIMIT = 1_000
"""How often people's tools may give a frame back before the queue drops it: RabbitMQ 4 would after 20 times.

What was dropped is still in the list of open ones.
"""
SIGNAL_TTL_MS = 60_000
"""Signals are about attempts that run now."""
MAX_REPLICA_QUEUE_LENGTH = 10_000
"""Heartbeats and wake-ups are worth nothing when old: beyond this the oldest are dropped."""
MAX_FRAME_BYTES = 1_048_576
"""Larger frames are refused before publishing; an oversized one would break its whole channel."""

RESULTS_KEY = "results"
SIGNALS_KEY = "signals"
REGISTRY_KEY = "registry"
"""Routing keys of the result and registry exchanges."""
REGISTRY_CHANGED = "registry_changed"
"""The `type` of an announcement on the heartbeat exchange; frames carry their own type there."""

QueueArguments = Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All names under one prefix, so that several dispatchers can share a broker.

    An agent's queue that has reached `max_queue_length` waiting tasks refuses the next ones. RabbitMQ
    takes what is on its way at that moment, at most as many as all replicas publish at a time. Like
    all arguments it can't be changed in place: queues that exist have to be deleted first.
    """

    prefix: str = "ard"
    max_queue_length: int = MAX_QUEUE_LENGTH

    @property
    def task_exchange(self) -> str:
        """Direct; the routing key is the agent id, so an unknown agent is unroutable at once."""
        return f"{self.prefix}.task"

    @property
    def dead_exchange(self) -> str:
        """Direct; the routing key is the agent id, for results `dead_results_key`."""
        return f"{self.prefix}.dead"

    @property
    def result_exchange(self) -> str:
        """Direct, with the keys `results` and `signals`."""
        return f"{self.prefix}.result"

    @property
    def registry_exchange(self) -> str:
        """Direct, with the one key `registry`: register, drain, leave, and heartbeats that want a reply."""
        return f"{self.prefix}.registry"

    @property
    def heartbeat_exchange(self) -> str:
        """Fan-out to every replica's exclusive queue: heartbeats and registry changes."""
        return f"{self.prefix}.heartbeats"

    @property
    def wake_exchange(self) -> str:
        """Direct; the routing key is the replica that waits for the request."""
        return f"{self.prefix}.wake"

    @property
    def control_exchange(self) -> str:
        """Direct; the routing key is the agent id, every instance's own queue is bound: cancellations."""
        return f"{self.prefix}.control"

    @property
    def results_queue(self) -> str:
        """Durable, consumed by every replica."""
        return f"{self.prefix}.results.{QUEUE_VERSION}"

    @property
    def signals_queue(self) -> str:
        """Durable, consumed by every replica that knows signals."""
        return f"{self.prefix}.signals.{QUEUE_VERSION}"

    @property
    def registry_queue(self) -> str:
        """Durable, consumed by every replica."""
        return f"{self.prefix}.registry.{QUEUE_VERSION}"

    def task_queue(self, agent_id: AgentId) -> str:
        """The agent's queue, shared by all its instances."""
        return f"{self.prefix}.task.{agent_id}.{QUEUE_VERSION}"

    @property
    def dead_queue(self) -> str:
        """Tasks and results that were given up; consumed by every replica, which keeps them in the ledger."""
        return f"{self.prefix}.dead.{QUEUE_VERSION}"

    @property
    def people_queue(self) -> str:
        """Durable, published to by its name; consumed by people's own tools."""
        return f"{self.prefix}.people.{QUEUE_VERSION}"

    @property
    def dead_results_key(self) -> str:
        """What result frames that nobody can read, or that always fail, are given up under."""
        return f"{self.prefix}.dead-results.{QUEUE_VERSION}"

    @property
    def canary_queue(self) -> str:
        """How the names of queues begin that are made for a moment, to see whether new ones answer."""
        return f"{self.prefix}.canary"

    def replica_queue(self, replica_id: ReplicaId) -> str:
        """Exclusive to one running replica: wake-ups, heartbeats, registry changes."""
        return f"{self.prefix}.replica.{replica_id}"

    def instance_queue(self, instance_id: InstanceId) -> str:
        """Exclusive to one agent instance: replies to its registry frames, cancellations."""
        return f"{self.prefix}.instance.{instance_id}"

    def task_arguments(self, agent_id: AgentId) -> QueueArguments:
        """At-least-once dead lettering needs all of: quorum, strategy, reject-publish and an exchange."""
        return {
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            "x-dead-letter-exchange": self.dead_exchange,
            "x-dead-letter-routing-key": agent_id,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-max-length": self.max_queue_length,
        }

    def dead_arguments(self) -> QueueArguments:
        """Kept until a replica took it: seven days or MAX_QUEUE_LENGTH messages at most."""
        return {
            "x-queue-type": "quorum",
            "x-max-length": MAX_QUEUE_LENGTH,
            "x-message-ttl": DEAD_LETTER_TTL_MS,
        }

    def people_arguments(self) -> QueueArguments:
        """Kept until a tool took it; what is too much is refused and told later."""
        return {
            "x-queue-type": "quorum",
            "x-delivery-limit": PEOPLE_DELIVERY_LIMIT,
            "x-overflow": "reject-publish",
            "x-max-length": MAX_QUEUE_LENGTH,
        }

    def results_arguments(self) -> QueueArguments:
        """Classic and durable: a lost result can be had again from the agent's inbox."""
        return {
            "x-queue-type": "classic",
            "x-dead-letter-exchange": self.dead_exchange,
            "x-dead-letter-routing-key": self.dead_results_key,
        }

    def signals_arguments(self) -> QueueArguments:
        """Classic and durable; what is old or too much is dropped, the oldest first."""
        return {
            "x-queue-type": "classic",
            "x-max-length": MAX_QUEUE_LENGTH,
            "x-message-ttl": SIGNAL_TTL_MS,
        }

    def registry_arguments(self) -> QueueArguments:
        """Classic and durable; an unanswered call is made again."""
        return {"x-queue-type": "classic", "x-max-length": MAX_QUEUE_LENGTH}

    def exclusive_arguments(self) -> QueueArguments:
        """Of the queues that end with their connection."""
        return {"x-queue-type": "classic", "x-max-length": MAX_REPLICA_QUEUE_LENGTH}
