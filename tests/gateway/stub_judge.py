"""Takes judgements, and remembers them."""

from collections.abc import Sequence

from dispatcher.dispatch.lifecycle.judgement import Judgement
from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.registry.access import Identity


class StubJudge:
    """Implements `gateway.parts.Judge`."""

    def __init__(self) -> None:
        self.given: list[tuple[RequestState, Sequence[Judgement], Identity]] = []

    async def take(self, state: RequestState, judgements: Sequence[Judgement], identity: Identity) -> None:
        self.given.append((state, judgements, identity))
