"""Takes what people say about routing: checked against the request, then stored."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Protocol

from dispatcher.dispatch.lifecycle.judgement import Given, Judgement, Verdict
from dispatcher.dispatch.lifecycle.part import shown_capability
from dispatcher.dispatch.lifecycle.request import RequestState, Task
from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.registry.access import Identity


class JudgementRepository(Protocol):
    """Where judgements are kept."""

    async def record(self, given: Given) -> None:
        """Store them; each takes the place of an earlier one of its intent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """`known` answers with the capabilities that are registered now."""

    repository: JudgementRepository
    known: Callable[[], Container[Capability]]

    async def take(self, state: RequestState, judgements: Sequence[Judgement], identity: Identity) -> None:
        """Store judgements of a request that the identity may read.

        Raises RequestError `unknown_intent`, `judged_twice`, `contradictory_feedback` or
        `unknown_capability`, also for one that is not granted; nothing was stored then.
        """
        positions = [one.position for one in judgements]
        if len(set(positions)) < len(positions):
            raise RequestError("each intent can be judged once in one message", code="judged_twice")
        tasks = {task.position: task for task in state.tasks}
        for one in judgements:
            self._check(one, tasks.get(one.position), identity)
        given = Given(
            request_id=state.request.request_id,
            caller=state.request.caller,
            given_by=identity.subject,
            judgements=tuple(judgements),
        )
        await self.repository.record(given)

    def _check(self, judgement: Judgement, task: Task | None, identity: Identity) -> None:
        if task is None:
            raise RequestError(f"the request has no intent {judgement.position}", code="unknown_intent")
        named = judgement.capability
        if named is None:
            return
        if judgement.verdict is not Verdict.WRONG_CAPABILITY:
            raise _contradiction()
        # Before it is compared: a part that was refused for want of a grant must not tell whose it was (I6).
        if named not in self.known() or not identity.allows(named):
            raise RequestError("no agent declares this capability", code="unknown_capability")
        # What was chosen may be a near one or the fallback, not what the intent was ranked to.
        if named == shown_capability(task):
            raise _contradiction()


def _contradiction() -> RequestError:
    return RequestError(
        "a capability goes with `wrong_capability`, and is another one than was chosen",
        code="contradictory_feedback",
    )
