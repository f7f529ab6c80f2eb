"""The in-process channel passes the suite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.channel.in_process import InProcessChannel, InProcessRules
from dispatcher.channel.result_intake import ResultRules
from dispatcher.channel.task_queue import QueueRules
from dispatcher.identifiers import ReplicaId
from tests.conformance.channel_behaviour import ChannelBehaviour
from tests.conformance.channel_world import RESULT_TRIES, Recorder, Replica, World


class TestInProcessChannel(ChannelBehaviour):
    """There is never more than one replica in a process."""

    @asynccontextmanager
    async def make(self, *, replicas: int = 1, max_length: int | None = None) -> AsyncIterator[World]:
        queue = QueueRules() if max_length is None else QueueRules(max_length=max_length)
        results = ResultRules(requeue_pause_s=0, tries=RESULT_TRIES)
        channel = InProcessChannel(InProcessRules(queue=queue, results=results))
        received = Recorder()

        async with channel.open(received.inbound()):
            yield World(
                replicas=[Replica(replica_id=ReplicaId("only"), channel=channel, received=received)],
                link=channel.link(),
            )
