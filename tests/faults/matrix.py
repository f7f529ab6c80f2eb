"""The rows of the fault matrix that are run, in this order; broker and database are killed last."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.faults import ledger, processes, transport
from tests.faults.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fault. `numbers` are the matrix's, joined by a slash; `settings` are the gateways' own."""

    numbers: str
    title: str
    fault: Callable[[Trial], Awaitable[None]]
    settings: Mapping[str, str] = field(default_factory=dict)


USUAL_LIVENESS = {
    "DISPATCHER_LIVENESS__HEARTBEAT_S": "5",
    "DISPATCHER_LIVENESS__SUSPECT_AFTER_S": "15",
    "DISPATCHER_LIVENESS__OFFLINE_AFTER_S": "45",
}
"""For faults that end by times which no setting makes shorter: AMQP heartbeats, pauses between connects."""

ROWS = (
    Row(numbers="2/3", title="gateway killed under load", fault=processes.gateway_killed_under_load),
    Row(numbers="4", title="gateways killed after 202", fault=processes.gateways_killed_after_202),
    Row(
        numbers="5", title="agent killed before its handler", fault=processes.agent_killed_before_its_handler
    ),
    Row(
        numbers="6", title="agent killed during its handler", fault=processes.agent_killed_during_its_handler
    ),
    Row(numbers="7", title="agent killed after its handler", fault=processes.agent_killed_after_its_handler),
    Row(numbers="9", title="agent stopped and continued", fault=processes.agent_stopped_and_continued),
    Row(numbers="10", title="terminated under load", fault=processes.terminated_under_load),
    Row(numbers="14", title="broker connections cut", fault=transport.broker_connections_cut),
    Row(
        numbers="15",
        title="broker connections half-open",
        fault=transport.broker_connections_half_open,
        settings=USUAL_LIVENESS,
    ),
    Row(numbers="18", title="task queue deleted", fault=transport.task_queue_deleted),
    Row(numbers="22", title="deliveries tripled", fault=transport.deliveries_tripled),
    Row(numbers="22b", title="declined delivery comes again", fault=transport.declined_delivery_comes_again),
    Row(numbers="24", title="junk in every queue", fault=transport.junk_everywhere),
    Row(numbers="44", title="result after the end", fault=ledger.result_after_the_end),
    Row(numbers="45", title="results that contradict", fault=ledger.results_that_contradict),
    Row(numbers="26", title="database stopped in commits", fault=ledger.database_stopped_during_commits),
    Row(numbers="27", title="database down", fault=ledger.database_down),
    Row(
        numbers="11",
        title="broker killed",
        fault=transport.broker_killed_while_publishing,
        settings=USUAL_LIVENESS,
    ),
    Row(numbers="13", title="broker down", fault=transport.broker_down),
)
