"""How a task ends that no agent gets: by its decision (pure)."""

from collections.abc import Sequence

from dispatcher.dispatch.lifecycle.option import DescribedOption, options_document
from dispatcher.dispatch.lifecycle.request import Task, TaskStatus
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.records import replace
from dispatcher.routing.decision import Decision, Outcome, Rejection

FINAL = frozenset({Outcome.OUT_OF_SCOPE, Outcome.CLARIFY, Outcome.HANDED_OFF})
"""Whatever else a task lacks, these end it."""


def end_unassigned(draft: Draft, task: Task, decision: Decision, options: Sequence[DescribedOption]) -> None:
    """End the task as the decision says, whose `agent_id` is None."""
    ended = replace(task, ranking=None)
    match decision.outcome:
        case Outcome.OUT_OF_SCOPE:
            draft.put_task(_refused(ended, decision, TaskStatus.OUT_OF_SCOPE))
        case Outcome.HANDED_OFF:
            # Where the caller described what it wants, that was decided on in the message's place.
            described = decision.text if decision.text != draft.intent_of(task).text else None
            draft.hand_off(_refused(ended, decision, TaskStatus.HANDED_OFF), described)
        case Outcome.CLARIFY:
            asked, kept = TaskStatus.CLARIFY, options_document(options)
            draft.put_task(replace(ended, status=asked, error_code="ambiguous", result_data=kept))
        case _:
            draft.put_task(_unavailable(ended, decision))


def _refused(task: Task, decision: Decision, status: TaskStatus) -> Task:
    # What was not granted looks like any other text that nobody can do.
    similarity = 0.0 if decision.reason == Rejection.NOT_GRANTED else task.similarity
    return replace(task, status=status, error_code=status.value, similarity=similarity)


def _unavailable(task: Task, decision: Decision) -> Task:
    return replace(
        task,
        status=TaskStatus.UNAVAILABLE,
        score=decision.score,
        error_code="unavailable",
        reason=decision.reason,
        retry_after_s=decision.retry_after_s,
    )
