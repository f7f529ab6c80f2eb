"""The topology as declarations: which exchange and queue exists for what, and who owns it."""

from dispatcher.amqp.declare import Binding, Exchange, Queue
from dispatcher.identifiers import AgentId, InstanceId, ReplicaId
from dispatcher.protocol.topology import REGISTRY_KEY, RESULTS_KEY, SIGNALS_KEY, Topology


def dispatcher_exchanges(topology: Topology) -> tuple[Exchange, ...]:
    """What a dispatcher publishes to."""
    return (
        Exchange(name=topology.task_exchange),
        Exchange(name=topology.wake_exchange),
        Exchange(name=topology.heartbeat_exchange, kind="fanout"),
        Exchange(name=topology.control_exchange),
    )


def agent_exchanges(topology: Topology) -> tuple[Exchange, ...]:
    """What an agent publishes to; they come with the first dispatcher."""
    return (
        Exchange(name=topology.result_exchange, owned=False),
        Exchange(name=topology.registry_exchange, owned=False),
        Exchange(name=topology.heartbeat_exchange, kind="fanout", owned=False),
    )


def task_queue(topology: Topology, agent_id: AgentId) -> Queue:
    """The agent's queue, owned by the dispatcher."""
    return Queue(
        name=topology.task_queue(agent_id),
        arguments=topology.task_arguments(agent_id),
        bindings=(Binding(exchange=Exchange(name=topology.task_exchange), key=agent_id),),
        dead_letters=dead_queue(topology, agent_id),
    )


def dead_queue(topology: Topology, key: str) -> Queue:
    """Shared by all replicas, with what is given up under `key`: an agent id, or that of the results."""
    return Queue(
        name=topology.dead_queue,
        arguments=topology.dead_arguments(),
        bindings=(Binding(exchange=Exchange(name=topology.dead_exchange), key=key),),
    )


def people_queue(topology: Topology) -> Queue:
    """Shared by people's tools; reached by its name through the default exchange."""
    return Queue(name=topology.people_queue, arguments=topology.people_arguments())


def results_queue(topology: Topology) -> Queue:
    """Shared by all replicas."""
    return Queue(
        name=topology.results_queue,
        arguments=topology.results_arguments(),
        bindings=(Binding(exchange=Exchange(name=topology.result_exchange), key=RESULTS_KEY),),
        dead_letters=dead_queue(topology, topology.dead_results_key),
    )


def signals_queue(topology: Topology) -> Queue:
    """Shared by all replicas."""
    return Queue(
        name=topology.signals_queue,
        arguments=topology.signals_arguments(),
        bindings=(Binding(exchange=Exchange(name=topology.result_exchange), key=SIGNALS_KEY),),
    )


def registry_queue(topology: Topology) -> Queue:
    """Shared by all replicas."""
    return Queue(
        name=topology.registry_queue,
        arguments=topology.registry_arguments(),
        bindings=(Binding(exchange=Exchange(name=topology.registry_exchange), key=REGISTRY_KEY),),
    )


def replica_queue(topology: Topology, replica_id: ReplicaId) -> Queue:
    """One replica's own: heartbeats, announcements and its wake-ups."""
    return Queue(
        name=topology.replica_queue(replica_id),
        arguments=topology.exclusive_arguments(),
        exclusive=True,
        bindings=(
            Binding(exchange=Exchange(name=topology.heartbeat_exchange, kind="fanout")),
            Binding(exchange=Exchange(name=topology.wake_exchange), key=replica_id),
        ),
    )


def instance_queue(topology: Topology, instance_id: InstanceId) -> Queue:
    """One agent instance's own: replies; reached by its name through the default exchange."""
    return Queue(
        name=topology.instance_queue(instance_id), arguments=topology.exclusive_arguments(), exclusive=True
    )


def control_queue(topology: Topology, instance_id: InstanceId, agent_id: AgentId) -> Queue:
    """One agent instance's own: what all instances of the agent are told."""
    control = Exchange(name=topology.control_exchange, owned=False)
    return Queue(
        name=f"{topology.instance_queue(instance_id)}.control",
        arguments=topology.exclusive_arguments(),
        exclusive=True,
        bindings=(Binding(exchange=control, key=agent_id),),
    )
