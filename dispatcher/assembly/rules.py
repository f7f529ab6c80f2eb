"""From settings to the rules that each room is built with; plain translation."""

import random
import secrets
from functools import partial

from dispatcher.channel.http_call import CallRules, CallTimes
from dispatcher.channel.http_policy import LOOPBACK, AddressPolicy
from dispatcher.clock import Clock
from dispatcher.dispatch.fallback import Fallback, FallbackKind
from dispatcher.dispatch.lifecycle.assign import Assigner, AttemptRules
from dispatcher.dispatch.lifecycle.match import MatchRules, plain
from dispatcher.dispatch.relay import RelayRules
from dispatcher.dispatch.retry_budget import RetryBudget, RetryRules
from dispatcher.dispatch.route_query import RouteQueryRules
from dispatcher.dispatch.selection import Selection
from dispatcher.gateway.parts import GatewayRules
from dispatcher.identifiers import Capability, ReplicaId
from dispatcher.protocol.topology import Topology
from dispatcher.registry.admission import AdmissionRules
from dispatcher.registry.agent import LivenessRules
from dispatcher.registry.direct import TicketRules
from dispatcher.registry.view import LiveView
from dispatcher.routing.decision import Weights
from dispatcher.routing.rules import ClarifyRules, RoutingRules
from dispatcher.settings import Settings

LONGEST_SEND_S = 5.5
"""A send gives up after 5 s; an attempt is not sent unless its claim outlives that."""


def topology(settings: Settings) -> Topology:
    """Names of queues and exchanges."""
    return Topology(prefix=settings.broker.prefix, max_queue_length=settings.broker.max_queue_length)


def liveness_rules(settings: Settings) -> LivenessRules:
    """When an instance counts as suspect and as offline."""
    chosen = settings.liveness
    return LivenessRules(
        heartbeat_s=chosen.heartbeat_s,
        suspect_after_s=chosen.suspect_after_s,
        offline_after_s=chosen.offline_after_s,
    )


def admission_rules(settings: Settings) -> AdmissionRules:
    """Which agents may register."""
    return AdmissionRules(
        liveness=liveness_rules(settings),
        default_environment=settings.environment,
        channels=frozenset({"in-process" if settings.broker_url is None else "rabbitmq", "http"}),
        endpoint_flaw=address_policy(settings).endpoint_flaw,
    )


def address_policy(settings: Settings) -> AddressPolicy:
    """Which addresses agents may be called at."""
    loopback = LOOPBACK if settings.auth.development else ()
    return AddressPolicy(allowed=(*settings.http.allowed_networks, *loopback))


def call_rules(settings: Settings) -> CallRules:
    """How agents over HTTP are called, and how long that may take."""
    http = settings.http
    usual = CallTimes(
        connect_s=http.connect_timeout_s, read_s=http.read_timeout_s, total_s=http.total_timeout_s
    )
    own = {
        capability: CallTimes(
            connect_s=times.connect_timeout_s or usual.connect_s,
            read_s=times.read_timeout_s or usual.read_s,
            total_s=times.total_timeout_s or usual.total_s,
        )
        for capability, times in http.capabilities.items()
    }
    credentials = {agent_id: secret.get_secret_value() for agent_id, secret in http.credentials.items()}
    return CallRules(times=usual, times_of=own, credentials=credentials)


def routing_rules(settings: Settings) -> RoutingRules:
    """How candidates are scored."""
    chosen = settings.routing
    return RoutingRules(
        weights=Weights(similarity=chosen.similarity, success=chosen.success, headroom=chosen.headroom),
        similarity_floor=chosen.floor,
        composite_floor=chosen.floor,
        margin=chosen.margin,
        clarify=clarify_rules(settings),
        lexical_share=chosen.lexical,
    )


def clarify_rules(settings: Settings) -> ClarifyRules:
    """When a person is asked which of near capabilities is meant."""
    chosen = settings.routing
    own = {Capability(name): margin for name, margin in chosen.clarify.items()}
    return ClarifyRules(margin=chosen.clarify_margin, own=own)


def match_rules(settings: Settings) -> MatchRules:
    """How capabilities are found that callers don't name exactly."""
    chosen = settings.routing
    return MatchRules(
        synonyms={plain(alias): Capability(name) for alias, name in chosen.synonyms.items()},
        semantic=chosen.semantic,
        semantic_off=frozenset(chosen.semantic_off),
    )


def fallback(settings: Settings) -> Fallback:
    """What becomes of parts that are out of scope."""
    chosen = settings.routing
    named = Capability(chosen.fallback_capability) if chosen.fallback_capability else None
    return Fallback(kind=FallbackKind(chosen.fallback), capability=named)


def relay_rules(settings: Settings) -> RelayRules:
    """How the outbox is published."""
    return RelayRules(
        reply_to=topology(settings).result_exchange,
        publishers=settings.delivery.publishers,
        look_every_s=settings.delivery.look_every_s,
        stale_ms=round((settings.delivery.claim_s - LONGEST_SEND_S) * 1000),
    )


def ticket_rules(settings: Settings) -> TicketRules:
    """How long tickets for direct calls are good."""
    return TicketRules(epoch_s=settings.direct.epoch_s)


def route_query_rules(settings: Settings) -> RouteQueryRules:
    """What callers are told that dispatch themselves: loads are as new as heartbeats are frequent."""
    return RouteQueryRules(expires_in_s=settings.liveness.heartbeat_s)


def gateway_rules(settings: Settings) -> GatewayRules:
    """Limits of the HTTP side."""
    server = settings.server
    return GatewayRules(
        default_environment=settings.environment,
        max_body_bytes=server.max_body_bytes,
        default_wait_s=server.default_wait_s,
        max_wait_s=server.max_wait_s,
        stream_stall_s=server.stream_stall_s,
        max_arriving=server.max_arriving,
        docs=server.docs,
    )


def assigner(
    settings: Settings, view: LiveView, selection: Selection, replica: ReplicaId, clock: Clock
) -> Assigner:
    """How attempts are made."""
    delivery = settings.delivery
    return Assigner(
        rules=AttemptRules(
            max_attempts=delivery.max_attempts,
            attempt_timeout_ms=round(delivery.attempt_timeout_s * 1000),
            delay_min_ms=delivery.delay_min_ms,
            delay_max_ms=delivery.delay_max_ms,
            claim_ms=round(delivery.claim_s * 1000),
            request_timeout_ms=round(delivery.request_timeout_s * 1000),
            long_after_ms=round(delivery.long_after_s * 1000),
            lease_ms=round(delivery.lease_s * 1000),
        ),
        choose=selection.choose,
        loads=view,
        retries=RetryBudget(
            RetryRules(
                every_s=delivery.retry_every_s, share=delivery.retry_share, floor=delivery.retry_floor
            ),
            clock,
        ),
        new_token=partial(secrets.token_urlsafe, 32),
        chance=random.Random(),  # noqa: S311 - spreads retries, keeps no secret
        replica=replica,
    )
